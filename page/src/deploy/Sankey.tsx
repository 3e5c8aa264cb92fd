import { PALETTE } from "../palette";
import { Grid } from "../Results";
import { text } from "../text";
import { type Flow, laidOut, type Picture, showRate } from "./sankey";

const WIDTH = 1000;

/** Flows of a deployment on its hosts: pale bands are planned, dark ones measured. A table says the same. */
export function Sankey({ title, picture, live }: { title: string; picture: Picture; live: boolean }) {
  const { boxes, bands, width, height } = laidOut(picture, WIDTH);
  const colour = (filter: string): string => PALETTE[picture.filters.indexOf(filter) % PALETTE.length]!;
  return (
    <figure className="sankey">
      <div className="scroll wide" tabIndex={0} role="region" aria-label={title}>
        <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${title}. ${text.deploy.chart}`}>
          {picture.filters.map((filter, at) => {
            const box = boxes.find((one) => one.column === at);
            return box && <text key={filter} x={box.x} y="16" className="filter">{filter}</text>;
          })}
          {bands.map((band) => {
            const middle = (band.from.x + band.to.x) / 2;
            const path = `M${band.from.x} ${band.from.y} C${middle} ${band.from.y} ${middle} ${band.to.y} ${band.to.x} ${band.to.y}`;
            return (
              <g key={nameOf(band.flow)} fill="none" stroke={colour(band.flow.source_filter)}>
                <title>{`${nameOf(band.flow)}: ${tell(band.flow)}`}</title>
                <path className="planned" d={path} strokeWidth={band.width} />
                {live && band.measured > 0 && <path className="measured" d={path} strokeWidth={Math.max(1, band.measured)} />}
              </g>
            );
          })}
          {boxes.map((box) => (
            <g key={`${box.filter} ${box.host}`}>
              <title>{`${box.filter} ${text.run.on} ${box.host}: ${box.copies} ${text.deploy.copies}, ${Math.round(100 * box.busy)} % ${text.deploy.busy}`}</title>
              <rect x={box.x} y={box.y} width="14" height={box.height} rx="2" fill={colour(box.filter)} className={picture.limits.includes(box.host) || picture.limits.includes(box.filter) ? "limit" : ""} />
              <text x={box.x + 19} y={box.y + box.height / 2}>{label(box.host, box.copies, box.busy)}</text>
            </g>
          ))}
        </svg>
      </div>
      <figcaption>{text.deploy.legend}{picture.merged ? ` ${text.deploy.merged}` : ""}</figcaption>
      <details open={live && picture.flows.length <= 40}>
        <summary>{text.deploy.table}</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label={text.deploy.table}>
          <Grid headers={live ? text.deploy.liveHeaders : text.deploy.flowHeaders} rows={picture.flows.slice(0, 1000).map((flow) => [
            `${flow.source_filter} ${text.run.on} ${flow.source}`, `${flow.target_filter} ${text.run.on} ${flow.target}`, showRate(flow.planned), ...(live ? [showRate(flow.measured)] : [])])} />
        </div>
      </details>
    </figure>
  );
}

function label(host: string, copies: number, busy: number): string {
  return `${host}${copies > 1 ? ` ×${copies}` : ""} ${Math.round(100 * busy)} %`;
}

function nameOf(flow: Flow): string {
  return `${flow.source_filter} ${text.run.on} ${flow.source} → ${flow.target_filter} ${text.run.on} ${flow.target}`;
}

function tell(flow: Flow): string {
  return [flow.planned === null ? "" : `${text.planned} ${showRate(flow.planned)}`, flow.measured === undefined ? "" : `${text.deploy.measured} ${showRate(flow.measured)}`].filter(Boolean).join(", ");
}
