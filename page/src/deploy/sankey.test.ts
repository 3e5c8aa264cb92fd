import { expect, test } from "vitest";
import { laidOut, pictureOf, showRate, type Flow } from "./sankey";

const flow = (source: string, target: string, planned: number | null, measured?: number): Flow =>
  ({ source_filter: "read", target_filter: "add", source, target, planned, ...(measured === undefined ? {} : { measured }) });
const node = (filter: string, host: string) => ({ filter, host, site: "lab", copies: 1, busy: 0.5 });
const picture = { filters: ["read", "add"], nodes: [node("read", "a"), node("add", "b"), node("add", "c")], flows: [flow("a", "b", 3), flow("a", "c", 1)], limits: [], merged: false };

test("bands are as wide as their rates, and lie side by side in their boxes", () => {
  const { boxes, bands } = laidOut(picture, 800);
  expect(bands.map((band) => band.width / bands[1]!.width)).toEqual([3, 1]);
  const read = boxes[0]!;
  expect(bands[0]!.from.y - bands[0]!.width / 2).toBeCloseTo(read.y);
  expect(bands[1]!.from.y + bands[1]!.width / 2).toBeCloseTo(read.y + read.height);
  expect(boxes.map((box) => box.column)).toEqual([0, 1, 1]);
  expect(boxes[2]!.y).toBeGreaterThan(boxes[1]!.y + boxes[1]!.height);
});

test("what is measured has the scale of what is planned", () => {
  const { bands } = laidOut({ ...picture, flows: [flow("a", "b", 3, 1.5), flow("a", "c", 1, 2)] }, 800);
  expect(bands.map((band) => band.measured / band.width)).toEqual([0.5, 2]);
});

test("without a plan, bands are as wide as what is measured", () => {
  const made = pictureOf([{ filter: "read", host: "a", busy: 1 }, { filter: "add", host: "b", busy: 0.2 }, { filter: "add", host: "b", busy: 0.4 }], [flow("a", "b", null, 2)]);
  expect(made.nodes[1]).toMatchObject({ copies: 2 });
  expect(made.nodes[1]!.busy).toBeCloseTo(0.3);
  const { bands } = laidOut(made, 800);
  expect(bands[0]!.measured).toBeCloseTo(bands[0]!.width);
});

test("flows of hosts that are not drawn are left out", () => {
  expect(laidOut({ ...picture, flows: [flow("a", "nowhere", 1)] }, 800).bands).toEqual([]);
});

test("rates have three digits", () => {
  expect([showRate(1.23456), showRate(null), showRate(0)]).toEqual(["1.23 MB/s", "", "0 MB/s"]);
});
