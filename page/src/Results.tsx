import { useEffect, useState } from "react";
import { api, type Preview, type ResultEntry } from "./api";
import { text } from "./text";
import { showSize } from "./Workers";

/** The results of a run; a chosen one is shown. */
export function Results({ run }: { run: string }) {
  const [entries, setEntries] = useState<ResultEntry[] | null>(null);
  const [shown, setShown] = useState<Preview | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    setShown(null);
    setEntries(null);
    setError("");
    api.results(run).then(setEntries).catch((problem: Error) => setError(problem.message));
  }, [run]);
  const open = (item: string): void => {
    setError("");
    api.preview(run, item).then(setShown).catch((problem: Error) => { setShown(null); setError(problem.message); });
  };
  return (
    <section>
      <h2>{text.runs.results}</h2>
      {entries?.length === 0 && <p>{text.runs.noResults}</p>}
      {entries !== null && entries.length > 0 && (
        <div className="scroll" tabIndex={0} role="region" aria-label={text.runs.results}>
          <Grid headers={text.runs.resultHeaders} rows={entries.slice(0, 500).map((one) => [
            <button key={one.item} type="button" onClick={() => open(one.item)}>{one.item}</button>, one.task, one.name, showSize(one.size)])} />
        </div>
      )}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {shown && <Shown preview={shown} />}
    </section>
  );
}

function Shown({ preview }: { preview: Preview }) {
  return (
    <figure className="preview">
      <figcaption>{`${preview.item} (${preview.kind}, ${preview.size}): ${preview.location}`}</figcaption>
      {preview.facts && <dl className="summary">{preview.facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>}
      {preview.source && <img src={preview.source} alt={preview.item} />}
      {preview.headers && preview.rows && <div className="scroll" tabIndex={0} role="region" aria-label={preview.item}><Grid headers={preview.headers} rows={preview.rows} /></div>}
      {preview.text !== undefined && <pre tabIndex={0}>{preview.text}</pre>}
      {preview.cut && <p className="hint">{text.runs.cut}</p>}
    </figure>
  );
}

export function Grid({ headers, rows }: { headers: string[]; rows: React.ReactNode[][] }) {
  return (
    <table>
      <thead><tr>{headers.map((name, at) => <th key={at} scope="col">{name}</th>)}</tr></thead>
      <tbody>{rows.map((row, at) => <tr key={at}>{row.map((cell, column) => <td key={column}>{cell}</td>)}</tr>)}</tbody>
    </table>
  );
}

/** Let the browser save a text as a file. */
export function saveAs(name: string, content: string, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
