import { expect, test } from "vitest";
import { binsOf, faultsText, NEW_FAULT } from "./distribution";

test("every run that ended is in one bin", () => {
  const values = [1, 2, 3, null, 4, 4, 4, 10];
  const bins = binsOf(values);
  expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(7);
  expect([bins[0]!.from, bins[bins.length - 1]!.to]).toEqual([1, 10]);
  expect(bins[bins.length - 1]!.count).toBe(1);
});

test("runs that are all alike are one bin", () => {
  expect(binsOf([2, 2, 2])).toEqual([{ from: 2, to: 2, count: 3 }]);
  expect(binsOf([null])).toEqual([]);
});

test("faults are written as the command takes them", () => {
  expect(faultsText([NEW_FAULT, { kind: "slow", who: "n1", factor: 0.25, at: "100", lasts: "60" }])).toBe("kill=1@30%,slow=n1*0.25@100+60");
  expect(faultsText([])).toBe("");
});
