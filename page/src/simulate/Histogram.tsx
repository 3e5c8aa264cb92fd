import type { SimulateAnswer } from "../api";
import { axisLabel, axisSteps, showTime } from "../gantt/schedule";
import { Grid } from "../Results";
import { text } from "../text";
import { binsOf } from "./distribution";

const WIDTH = 900;
const HEIGHT = 280;
const LEFT = 44;
const BOTTOM = 30;

/** How many runs had which makespan, with the median, the 95 % quantile and the interval of the mean. */
export function Histogram({ answer }: { answer: SimulateAnswer }) {
  const bins = binsOf(answer.makespans);
  if (bins.length === 0) return <p>{text.simulate.neverEnded}</p>;
  const marks: [string, number, boolean][] = ([[text.simulate.median, answer.makespan.median, false], ["95 %", answer.makespan.p95, true], [text.planned, answer.planned ?? null, true]] as [string, number | null, boolean][])
    .filter((mark): mark is [string, number, boolean] => mark[1] !== null);
  const ends = [bins[0]!.from, bins[bins.length - 1]!.to, ...marks.map((mark) => mark[1])];
  const low = Math.min(...ends);
  const high = Math.max(...ends) > low ? Math.max(...ends) : low * 1.01 + 1e-9;
  const x = (value: number): number => LEFT + ((value - low) / (high - low)) * (WIDTH - LEFT - 36);
  const most = Math.max(...bins.map((bin) => bin.count));
  const y = (count: number): number => HEIGHT - BOTTOM - (count / most) * (HEIGHT - BOTTOM - 44);
  const step = axisSteps(high - low, high, 8);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  const [from, to] = answer.confidence_interval;
  return (
    <figure className="histogram">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${answer.title}. ${text.simulate.chart}`}>
        {ticks.map((at) => <g key={at} className="tick"><line x1={x(at)} x2={x(at)} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM + 5} /><text x={x(at)} y={HEIGHT - 8} textAnchor="middle">{axisLabel(at, high)}</text></g>)}
        <line className="axis" x1={LEFT} x2={WIDTH - 36} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
        <text x="4" y={y(most) + 4}>{most}</text>
        {bins.map((bin) => (
          <rect key={bin.from} className="bin" x={x(bin.from)} y={y(bin.count)} width={Math.max(3, x(bin.to) - x(bin.from) - 1)} height={HEIGHT - BOTTOM - y(bin.count)}>
            <title>{`${showTime(bin.from)} – ${showTime(bin.to)}: ${bin.count}`}</title>
          </rect>
        ))}
        {from !== null && to !== null && from !== undefined && to !== undefined && (
          <g className="interval"><title>{`${text.simulate.interval}: ${showTime(from)} – ${showTime(to)}`}</title><line x1={x(Math.max(low, from))} x2={x(Math.min(high, to))} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} /></g>
        )}
        {marks.map(([name, value, dashed], row) => (
          <g key={name} className={dashed ? "mark dashed" : "mark"}>
            <line x1={x(value)} x2={x(value)} y1={14 + 14 * row} y2={HEIGHT - BOTTOM} />
            <text x={x(value) + (x(value) > WIDTH - 150 ? -4 : 4)} y={18 + 14 * row} textAnchor={x(value) > WIDTH - 150 ? "end" : "start"}>{`${name} ${showTime(value)}`}</text>
          </g>
        ))}
      </svg>
      <figcaption>{text.simulate.legend}</figcaption>
      <details>
        <summary>{text.simulate.table}</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label={text.simulate.table}>
          <Grid headers={text.simulate.headers} rows={answer.makespans.slice(0, 2000).map((value, at) => [answer.seeds.first + at, value === null ? text.simulate.never : showTime(value)])} />
        </div>
      </details>
    </figure>
  );
}
