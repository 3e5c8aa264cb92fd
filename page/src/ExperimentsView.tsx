import { useEffect, useState } from "react";
import { api, type Experiment, type ExperimentTable } from "./api";
import { Grid, saveAs } from "./Results";
import { text } from "./text";

const MOST = 300;

/** Experiments of the record: a table of parameters and results, and plots of one over the other. */
export function ExperimentsView() {
  const [known, setKnown] = useState<Experiment[] | null>(null);
  const [name, setName] = useState("");
  const [where, setWhere] = useState("");
  const [table, setTable] = useState<ExperimentTable | null>(null);
  const [axes, setAxes] = useState({ x: "", y: "", by: "" });
  const [svg, setSvg] = useState("");
  const [error, setError] = useState("");
  useEffect(() => { api.experiments().then(setKnown).catch((problem: Error) => setError(problem.message)); }, []);
  const load = (chosen: string, condition: string): void => {
    setError("");
    api.experimentTable(chosen, condition).then((found) => {
      setTable(found);
      const numbers = found.columns.filter((column, at) => !found.parameters.includes(column) && found.rows.some((row) => typeof row[at] === "number"));
      setAxes({ x: found.parameters[0] ?? "", y: numbers[0] ?? "", by: found.parameters[1] ?? "" });
    }).catch((problem: Error) => setError(problem.message));
  };
  useEffect(() => {
    setSvg("");
    if (name === "" || axes.x === "" || axes.y === "") return;
    api.experimentPlot(name, where, axes.x, axes.y, axes.by).then((answer) => setSvg(answer.svg)).catch((problem: Error) => setError(problem.message));
  }, [name, axes]);
  const names = [...new Map((known ?? []).map((one) => [one.name, one])).values()];
  const pick = (label: string, key: "x" | "y" | "by", options: string[], none?: string) => (
    <label>{label}
      <select value={axes[key]} onChange={(event) => setAxes({ ...axes, [key]: event.target.value })}>
        {none !== undefined && <option value="">{none}</option>}
        {options.map((one) => <option key={one}>{one}</option>)}
      </select>
    </label>
  );
  return (
    <section>
      {known?.length === 0 && <p>{text.experiments.none}</p>}
      {names.length > 0 && (
        <Grid headers={text.experiments.headers} rows={names.map((one) => [
          <button key={one.name} type="button" onClick={() => { setName(one.name); setWhere(""); load(one.name, ""); }}>{one.name}</button>, one.points, one.tasks, one.reused, one.run])} />
      )}
      {error !== "" && <p className="error" role="alert">{error}</p>}
      {table && (
        <article>
          <h2>{name}</h2>
          <form className="choices" onSubmit={(event) => { event.preventDefault(); load(name, where); }}>
            <label>{text.experiments.where}<input value={where} placeholder={text.experiments.whereHint} onChange={(event) => setWhere(event.target.value)} spellCheck={false} /></label>
            {pick(text.experiments.y, "y", table.columns)}
            {pick(text.experiments.x, "x", table.columns)}
            {pick(text.experiments.by, "by", table.parameters, text.experiments.one)}
            <button type="button" onClick={() => saveAs(`${name}.csv`, table.csv, "text/csv")}>{text.runs.exportCsv}</button>
          </form>
          {svg !== "" && <img className="plot" src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} alt={`${axes.y} ${text.experiments.x} ${axes.x}`} />}
          <p>{`${table.total} ${text.experiments.rows}`}</p>
          <div className="scroll" tabIndex={0} role="region" aria-label={name}><Grid headers={table.columns} rows={table.rows.slice(0, MOST)} /></div>
        </article>
      )}
    </section>
  );
}
