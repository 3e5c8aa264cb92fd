/** Whether a value of one annotation can be given for a parameter of another. Only what is certain to fail is refused. */

export type Classes = ReadonlyMap<string, readonly string[]>;

interface Type { name: string; parts: Type[] }

const ALIASES: Record<string, string> = { List: "list", Dict: "dict", Tuple: "tuple", Set: "set", FrozenSet: "frozenset", Text: "str", NoneType: "None", PosixPath: "Path", PurePath: "Path" };
const ITERABLE = ["Iterable", "Collection", "Container", "Sized", "Reversible"];
/** What each known type also is. */
const SUPERS: Record<string, string[]> = {
  bool: ["int", "float", "complex", "Real", "Number", "Hashable", "SupportsFloat"],
  int: ["float", "complex", "Real", "Number", "Hashable", "SupportsFloat"],
  float: ["complex", "Real", "Number", "Hashable", "SupportsFloat"],
  complex: ["Number", "Hashable"],
  str: ["Sequence", "Hashable", ...ITERABLE],
  bytes: ["Sequence", "Hashable", "Buffer", "bytearray", "memoryview", ...ITERABLE],
  bytearray: ["Sequence", "MutableSequence", "Buffer", "bytes", ...ITERABLE],
  list: ["Sequence", "MutableSequence", "ArrayLike", ...ITERABLE],
  tuple: ["Sequence", "Hashable", "ArrayLike", ...ITERABLE],
  set: ["Set", "AbstractSet", "MutableSet", ...ITERABLE],
  frozenset: ["Set", "AbstractSet", "Hashable", ...ITERABLE],
  dict: ["Mapping", "MutableMapping", ...ITERABLE],
  Path: ["PathLike", "Hashable"],
  Stream: [],
  None: ["Hashable"],
  ndarray: ["ArrayLike", "NDArray", "Buffer", ...ITERABLE],
  NDArray: ["ArrayLike", "ndarray", "Buffer", ...ITERABLE],
};
const ANYTHING = new Set(["", "Any", "object", "Self", "Literal", "Callable", "Protocol"]);

/** Why they do not fit; null if they do, or if it cannot be known. */
export function clash(source: string, target: string, classes: Classes = new Map()): string | null {
  const from = members(read(source));
  const to = members(read(target));
  const fits = from.some((one) => to.some((other) => fit(one, other, classes)));
  return fits ? null : `it is ${source}, and ${target} is expected`;
}

function fit(from: Type, to: Type, classes: Classes): boolean {
  if (open(from) || open(to)) return true;
  if (from.name === to.name) {
    if (from.parts.length === 0 || to.parts.length === 0 || from.parts.length !== to.parts.length) return true;
    return from.parts.every((part, at) => members(part).some((a) => members(to.parts[at]!).some((b) => fit(a, b, classes))));
  }
  if (ancestors(from.name, classes).has(to.name)) return true;
  return !(isKnown(from.name, classes) && isKnown(to.name, classes));
}

/** Type variables are open: one capital letter, or a name that begins with an underscore. */
function open(type: Type): boolean {
  return ANYTHING.has(type.name) || /^([A-Z]\d?|_.*|\.\.\.)$/.test(type.name);
}

function isKnown(name: string, classes: Classes): boolean {
  if (name in SUPERS || ["Sequence", "Mapping", "Iterable", "PathLike"].includes(name)) return true;
  const bases = classes.get(name);
  return bases !== undefined && bases.every((base) => isKnown(lastPart(base), classes) || base === "object");
}

function ancestors(name: string, classes: Classes, seen: Set<string> = new Set()): Set<string> {
  for (const base of [...(SUPERS[name] ?? []), ...(classes.get(name) ?? []).map(lastPart)]) {
    if (!seen.has(base)) {
      seen.add(base);
      if (!(name in SUPERS)) ancestors(base, classes, seen);
    }
  }
  return seen;
}

function lastPart(name: string): string {
  return name.replace(/\[.*$/s, "").split(".").pop()!;
}

function members(type: Type): Type[] {
  return type.name === "|" ? type.parts.flatMap(members) : [type];
}

/** Read an annotation: names with dots, arguments in brackets, `|`, and quoted names. */
function read(content: string): Type {
  const tokens = content.match(/\.\.\.|[\w.]+|'[^']*'|"[^"]*"|[[\](),|]/g) ?? [];
  let at = 0;
  const union = (): Type => {
    const parts = [atom()];
    while (tokens[at] === "|") { at++; parts.push(atom()); }
    return parts.length === 1 ? parts[0]! : { name: "|", parts };
  };
  const list = (end: string): Type[] => {
    const parts: Type[] = [];
    while (at < tokens.length && tokens[at] !== end) {
      if (tokens[at] === ",") at++;
      else { const before = at; parts.push(union()); if (at === before) at++; }
    }
    at++;
    return parts;
  };
  const atom = (): Type => {
    const token = tokens[at++] ?? "";
    if (token === "[" || token === "(") { list(token === "[" ? "]" : ")"); return { name: "", parts: [] }; }
    if (/^['"]/.test(token)) return read(token.slice(1, -1));
    const last = lastPart(token);
    const name = token === "..." ? token : ALIASES[last] ?? last;
    let parts: Type[] = [];
    if (tokens[at] === "[") { at++; parts = list("]"); }
    if (name === "Optional") return { name: "|", parts: [...parts, { name: "None", parts: [] }] };
    if (name === "Union") return { name: "|", parts };
    if (name === "Annotated" || name === "Final") return parts[0] ?? { name: "", parts: [] };
    return { name, parts };
  };
  return union();
}
