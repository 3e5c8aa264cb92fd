import { expect, test } from "vitest";
import { matches } from "../RunsView";
import { wordBefore } from "../RulesView";
import { describe as lines } from "./panel";
import { axisLabel, axisStep, axisSteps, chainOf, ghostsByName, lateBars, type Schedule, showTime } from "./schedule";

const schedule: Schedule = {
  format: "headrace-schedule-1",
  kind: "run",
  title: "two",
  end: 9,
  marks: [],
  notes: [],
  lanes: [["h0", false]],
  colours: [["task", "#4477aa"]],
  names: ["a", "b", "a", "b"],
  lane: [0, 0, 0, 0],
  start: [0, 2, 0, 6],
  finish: [2, 4, 6, 8],
  colour: [0, 0, 0, 0],
  ghost: [1, 1, 0, 0],
  wait: [-1, -1, -1, 2],
  waitKind: ["", "", "", "input"],
  critical: [3, 2],
  causes: {
    2: { late: 4, reason: "compute", seconds: 4, text: "a took 6 s", next: -1 },
    3: { late: 4, reason: "inherited", seconds: 4, text: "b waited for a", next: 2 },
  },
};

test("chains end at their root", () => {
  expect(chainOf(schedule, 3).map((step) => step.bar)).toEqual([3, 2]);
  expect(chainOf(schedule, 0)).toEqual([]);
});

test("a chain that goes in circles ends", () => {
  const broken = { ...schedule, causes: { 2: { ...schedule.causes[2]!, next: 3 }, 3: schedule.causes[3]! } };
  expect(chainOf(broken, 3)).toHaveLength(2);
});

test("late bars come latest first, ties in order", () => {
  expect(lateBars(schedule)).toEqual([2, 3]);
});

test("a bar is described by its times, its plan and its cause", () => {
  expect(lines(schedule, ghostsByName(schedule), 3)).toEqual([
    "ran: 6 s – 8 s (h0)",
    "planned: 2 s – 4 s (h0)",
    "Waited for its input from a (6 s).",
    "4 s late: b waited for a",
  ]);
});

test("times are those of the command", () => {
  expect([0, 0.5, 1.2345, 300, 1984.2, 73840, 2e-6].map(showTime)).toEqual(["0 s", "500 ms", "1.23 s", "300 s", "1984 s", "20 h 31 min", "2 µs"]);
});

test("axes have round steps in one unit", () => {
  expect(axisStep(10, 5)).toBe(2);
  expect(axisSteps(36_000, 36_000, 5)).toBe(2 * 3600);
  expect(axisLabel(120, 600)).toBe("120 s");
  expect(axisLabel(7200, 40_000)).toBe("2 h");
});

test("words that can be completed", () => {
  expect(wordBefore("select task-fi", 14)).toEqual(["task-fi", 7]);
  expect(wordBefore("select ", 7)).toEqual(["", 7]);
});

test("runs are filtered by words", () => {
  const run = { id: "1", program: "montage", platform: "lab", scheduler: "heft", status: "done", started: 0, makespan: 1 };
  expect([matches(run, ""), matches(run, "HEFT lab"), matches(run, "heft other")]).toEqual([true, true, false]);
});
