import { useEffect, useRef, useState } from "react";
import { api, type RuleError } from "./api";
import { text } from "./text";

const PAUSE = 300;

/** An editor of rules: errors below their place, and the names that rules can speak of. */
export function RulesView({ rules, change }: { rules: string; change(rules: string): void }) {
  const [errors, setErrors] = useState<RuleError[] | null>(null);
  const [problem, setProblem] = useState("");
  const [names, setNames] = useState<string[]>([]);
  const editor = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    api.attributes()
      .then((found) => setNames([...new Set(found.map((one) => one.name))].sort()))
      .catch((error: Error) => setProblem(error.message));
  }, []);
  useEffect(() => {
    setErrors(null);
    const timer = setTimeout(() => {
      api.checkRules(rules)
        .then((answer) => { setErrors(answer.errors); setProblem(""); })
        .catch((error: Error) => setProblem(error.message));
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [rules]);
  const [started, at] = wordBefore(rules, editor.current?.selectionStart ?? rules.length);
  const fitting = started.length < 2 ? [] : names.filter((name) => name.startsWith(started) && name !== started).slice(0, 8);
  const complete = (name: string): void => {
    change(rules.slice(0, at) + name + rules.slice(at + started.length));
    editor.current?.focus();
  };
  const goTo = (error: RuleError): void => {
    const start = rules.split("\n").slice(0, error.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    editor.current?.focus();
    editor.current?.setSelectionRange(start + error.column - 1, start + error.column);
  };
  return (
    <section>
      <label htmlFor="rules">{text.plan.rules}</label>
      <textarea id="rules" ref={editor} value={rules} rows={14} spellCheck={false} aria-invalid={errors !== null && errors.length > 0}
        aria-describedby="rule-errors" onChange={(event) => change(event.target.value)} />
      <div className="completions">
        {fitting.map((name) => <button type="button" key={name} onClick={() => complete(name)}>{name}</button>)}
      </div>
      <div id="rule-errors" role="status">
        {problem !== "" && <p className="error">{problem}</p>}
        {errors === null ? <p>{text.rules.checking}</p> : errors.length === 0 ? <p>{text.rules.ok} {text.rules.costs}</p> : (
          <ul>
            {errors.map((error, row) => (
              <li key={row} className="error">
                <button type="button" onClick={() => goTo(error)}>{`${error.line}:${error.column}`}</button>{" "}
                {error.problem}{error.hint ? ` (${error.hint})` : ""}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

/** The word that ends at a place, and where it begins. */
export function wordBefore(content: string, place: number): [string, number] {
  const found = /[A-Za-z][A-Za-z0-9-]*$/.exec(content.slice(0, place));
  return found === null ? ["", place] : [found[0], found.index];
}
