/** A text with suggestions, such as the files of the folder. */
export function Choice({ label, value, list, options, set, placeholder }: {
  label: string; value: string; list: string; options: string[]; set(value: string): void; placeholder?: string;
}) {
  return (
    <label>
      {label}
      <input value={value} list={list} onChange={(event) => set(event.target.value)} spellCheck={false} placeholder={placeholder} />
      <datalist id={list}>{options.map((name) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}

/** A number of a form. */
export function NumberField({ label, value, set, least = 0, most, step = "any" }: {
  label: string; value: number; set(value: number): void; least?: number; most?: number; step?: string;
}) {
  return <label>{label}<input type="number" min={least} max={most} step={step} value={value} onChange={(event) => set(Number(event.target.value))} /></label>;
}

export function Facts({ rows }: { rows: string[][] }) {
  return <dl className="summary">{rows.map(([name, value], row) => <div key={row}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}
