import { expect, test } from "vitest";
import { appended, type Schedule } from "../gantt/schedule";
import { unquoted } from "./Form";
import { clash } from "./annotations";
import { columns, laidOut } from "./layout";
import { addCommand, addFunction, addInput, addResult, changed, connect, disconnect, type Drawing, EMPTY, type FunctionSource, items, type Known, missing, redone, remove, renameItem, renameTask, setValue, undone } from "./model";

const blur: FunctionSource = {
  reference: "f.py:blur", name: "blur", returns: "list[float]", doc: "", line: 1, executable: "",
  parameters: [
    { name: "image", annotation: "list[float]", default: null, kind: "positional" },
    { name: "sigma", annotation: "float", default: "2.0", kind: "positional" },
  ],
};
const split: FunctionSource = { ...blur, reference: "f.py:split", name: "split", returns: "tuple[list[float], int]", parameters: [blur.parameters[0]!] };
const total: FunctionSource = { ...blur, reference: "f.py:total", name: "total", returns: "float", parameters: [{ name: "values", annotation: "list[float]", default: null, kind: "several" }] };
const known: Known = { functions: new Map([blur, split, total].map((one) => [one.reference, one])), classes: new Map() };

function drawn(): Drawing {
  let now = addFunction(EMPTY, split, null)[0];
  now = addFunction(now, blur, null)[0];
  return addFunction(now, total, null)[0];
}
const must = (change: ReturnType<typeof connect>): Drawing => {
  if ("reason" in change) throw new Error(change.reason);
  return change.drawing;
};

test("functions that return a tuple have several outputs", () => {
  expect(items(drawn())).toEqual(["split_1", "split_2", "blur_out", "total_out"]);
});

test("connections of the wrong type are refused with the reason", () => {
  expect(connect(drawn(), "split_2", "blur", "image", known)).toEqual({ reason: "split_2 → blur.image: it is int, and list[float] is expected" });
  expect(must(connect(drawn(), "split_1", "blur", "image", known)).tasks[1]!.inputs).toEqual([["image", "split_1"]]);
});

test("a task does not wait for itself", () => {
  const now = must(connect(drawn(), "split_1", "blur", "image", known));
  expect(connect(now, "blur_out", "split", "image", known)).toEqual({ reason: "split would wait for itself." });
  expect(connect(now, "blur_out", "blur", "image", known)).toHaveProperty("reason");
});

test("a parameter takes one item, a collecting one several", () => {
  let now = must(connect(drawn(), "split_1", "blur", "image", known));
  now = addInput(now, true, null)[0];
  expect(connect(now, "file", "blur", "image", known)).toHaveProperty("reason");
  now = must(connect(now, "split_1", "total", "values", known));
  now = must(connect(now, "blur_out", "total", "values", known));
  expect(now.tasks[2]!.inputs).toEqual([["values", "split_1"], ["values", "blur_out"]]);
  expect(disconnect(now, "split_1", "total", "values").tasks[2]!.inputs).toEqual([["values", "blur_out"]]);
});

test("a value takes the place of a connection, and the other way round", () => {
  let now = setValue(drawn(), "blur", "image", "[1.0]");
  expect(missing(now.tasks[1]!, known.functions)).toEqual([]);
  now = must(connect(now, "split_1", "blur", "image", known));
  expect(now.tasks[1]!.set).toEqual([]);
  expect(setValue(now, "blur", "image", "[2.0]").tasks[1]!.inputs).toEqual([]);
});

test("renaming follows everywhere", () => {
  let now = must(connect(drawn(), "split_1", "blur", "image", known));
  now = addResult(now, "split_1", null);
  now = must(renameItem(now, "split_1", "left"));
  expect([now.tasks[0]!.outputs[0]![0], now.tasks[1]!.inputs[0]![1], now.results[0]!.item]).toEqual(["left", "left", "left"]);
  expect(renameItem(now, "left", "split_2")).toHaveProperty("reason");
  expect(renameTask(now, "blur", "split")).toHaveProperty("reason");
  expect(must(renameTask(now, "blur", "soften")).tasks[1]!.name).toBe("soften");
  let command = addCommand(EMPTY, null)[0];
  command = { ...command, tasks: [{ ...command.tasks[0]!, command: ["cp", "x", "{command_out}"], stdout: null }] };
  expect(must(renameItem(command, "command_out", "copy")).tasks[0]!.command).toEqual(["cp", "x", "{copy}"]);
});

test("what a removed task made is disconnected", () => {
  let now = addResult(must(connect(drawn(), "split_1", "blur", "image", known)), "split_1", null);
  now = remove(now, new Set(["split"]), new Set(), new Set());
  expect([now.tasks.map((task) => task.name), now.tasks[0]!.inputs, now.results]).toEqual([["blur", "total"], [], []]);
});

test("changes are undone and redone", () => {
  const first = { past: [], now: EMPTY, future: [] };
  const second = changed(first, drawn());
  expect(undone(second).now).toBe(EMPTY);
  expect(redone(undone(second)).now).toBe(second.now);
  expect(undone(undone(second)).past).toEqual([]);
  expect(changed(undone(second), { ...EMPTY, name: "x" }).future).toEqual([]);
});

test("annotations that clash", () => {
  const classes = new Map([["Image", ["Array"]], ["Array", []], ["Sound", []]]);
  for (const [from, to] of [["int", "float"], ["bool", "int"], ["", "int"], ["list[int]", "Sequence[float]"], ["Optional[int]", "int"], ["int", "int | None"],
    ["np.ndarray", "ndarray"], ["Image", "Array"], ["Unknown", "int"], ["dict[str, int]", "Mapping[str, int]"], ["'Path'", "Path"], ["T", "int"], ["list", "list[int]"], ["Annotated[int, 5]", "float"], ["int", "object"]] as const) {
    expect([from, to, clash(from, to, classes)]).toEqual([from, to, null]);
  }
  for (const [from, to] of [["str", "int"], ["float", "int"], ["list[str]", "list[int]"], ["Path", "str"], ["Array", "Image"], ["Image", "Sound"], ["int | str", "bytes"], ["dict", "list"], ["int", "Sequence[int]"]] as const) {
    expect([from, to, clash(from, to, classes) !== null]).toEqual([from, to, true]);
  }
});

test("an annotation that never ends is read", () => {
  expect(clash("list[", "list[[[[", new Map())).toBeNull();
  expect(clash("]][[,,||", "int", new Map())).toBeNull();
});

test("columns follow the connections and nothing overlaps", () => {
  const places = columns([{ id: "a", height: 50 }, { id: "b", height: 50 }, { id: "c", height: 80 }], [["a", "c"], ["b", "c"]]);
  expect(places.get("a")![0]).toBe(places.get("b")![0]);
  expect(places.get("c")![0]).toBeGreaterThan(places.get("a")![0]);
  expect(Math.abs(places.get("a")![1] - places.get("b")![1])).toBeGreaterThanOrEqual(50);
  expect(laidOut(drawn(), () => 60).tasks.every((task) => task.at !== null)).toBe(true);
});

test("texts are shown without quotes", () => {
  expect(["\"a\\\"b\"", "'plain'", "'it\\'s'", "12"].map(unquoted)).toEqual(["a\"b", "plain", "'it\\'s'", "12"]);
});

test("executions are added to a schedule once, on a free lane", () => {
  const schedule: Schedule = {
    format: "", kind: "run", title: "", end: 2, marks: [], notes: [], lanes: [["h", false], ["h", false], ["h", true]], colours: [["a", "#000000"], ["b", "#ffffff"]],
    names: ["a", "b"], lane: [0, 0], start: [0, 0], finish: [1, 2], colour: [1, 0], ghost: [1, 0], wait: [-1, -1], waitKind: ["", ""], critical: [], causes: {},
  };
  const more = appended(schedule, [["b", "h", 0, 2], ["a", "h", 1, 3]])!;
  expect([more.names, more.lane, more.colour, more.end]).toEqual([["a", "b", "a"], [0, 0, 1], [1, 0, 1], 3]);
  expect(appended(schedule, [["a", "elsewhere", 1, 3]])).toBeNull();
});
