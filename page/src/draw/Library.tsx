import { useState } from "react";
import { text } from "../text";
import type { FunctionSource } from "./model";

export interface LibraryEntry { place: string; functions: FunctionSource[]; classes: { name: string; bases: string[] }[]; filters: FunctionSource[]; error: string }
/** What can be dragged to the canvas: a reference of a function, or one of these. */
export const BUILT_IN = ["command", "file", "value", "result"] as const;
export type BuiltIn = (typeof BUILT_IN)[number];
export const DRAGGED = "application/x-headrace";

/** The signature of a function, as Python writes it. */
export function signature(source: FunctionSource): string {
  const parts = source.parameters.map((one) => {
    const star = one.kind === "several" ? "*" : one.kind === "keywords" ? "**" : "";
    const value = one.default === null ? "" : one.annotation ? ` = ${one.default}` : `=${one.default}`;
    return `${star}${one.name}${one.annotation ? `: ${one.annotation}` : ""}${value}`;
  });
  return `(${parts.join(", ")})${source.returns ? ` -> ${source.returns}` : ""}`;
}

/** Tasks that can be drawn: drag one to the canvas, or press it. */
export function Library({ entries, offered, name, forget, add }: {
  entries: LibraryEntry[];
  offered: string[];
  name(place: string): void;
  forget(place: string): void;
  add(what: string): void;
}) {
  const [place, setPlace] = useState("");
  const [search, setSearch] = useState("");
  const fits = (source: FunctionSource): boolean => `${source.reference} ${source.doc}`.toLowerCase().includes(search.toLowerCase());
  return (
    <aside className="library" aria-label={text.draw.library}>
      <form onSubmit={(event) => { event.preventDefault(); if (place !== "") name(place.trim()); setPlace(""); }}>
        <label>{text.draw.place}
          <input value={place} list="places" onChange={(event) => setPlace(event.target.value)} spellCheck={false} />
          <datalist id="places">{offered.map((one) => <option key={one} value={one} />)}</datalist>
        </label>
        <button type="submit">{text.draw.list}</button>
      </form>
      <p className="hint">{text.draw.readOnly}</p>
      <ul>
        {BUILT_IN.map((what) => <li key={what}><Entry what={what} label={text.draw.builtIn[what]} detail="" doc="" refused="" add={add} /></li>)}
      </ul>
      <label>{text.draw.search} <input value={search} onChange={(event) => setSearch(event.target.value)} /></label>
      {entries.map((entry) => (
        <section key={entry.place}>
          <h3>{entry.place} <button type="button" aria-label={`${text.draw.forget} ${entry.place}`} onClick={() => forget(entry.place)}>×</button></h3>
          {entry.error !== "" && <p className="error">{entry.error}</p>}
          <ul>
            {entry.functions.filter(fits).slice(0, 200).map((source) => (
              <li key={source.reference}>
                <Entry what={source.reference} label={source.name} detail={signature(source)} doc={source.doc} refused={source.executable} add={add} />
              </li>
            ))}
          </ul>
          {entry.filters.length > 0 && (
            <>
              <h4>{text.draw.filters}</h4>
              <p className="hint">{text.draw.filtersHint}</p>
              <ul>
                {entry.filters.filter(fits).map((source) => (
                  <li key={source.reference}><Entry what={source.reference} label={source.name} detail={signature(source)} doc={source.doc} refused="" add={add} /></li>
                ))}
              </ul>
            </>
          )}
        </section>
      ))}
    </aside>
  );
}

function Entry({ what, label, detail, doc, refused, add }: { what: string; label: string; detail: string; doc: string; refused: string; add(what: string): void }) {
  return (
    <button type="button" className="entry" draggable={refused === ""} disabled={refused !== ""} title={refused || doc || undefined} onClick={() => add(what)}
      onDragStart={(event) => { event.dataTransfer.setData(DRAGGED, what); event.dataTransfer.effectAllowed = "copy"; }}>
      <b>{label}</b>
      {detail !== "" && <code>{detail}</code>}
      {(refused || doc) !== "" && <span>{(refused || doc).split("\n")[0]}</span>}
    </button>
  );
}
