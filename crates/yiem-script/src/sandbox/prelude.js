// What every sandbox begins with: takes away what a tool must not have, puts bounds on what the
// engine would do for hours without asking, and gives `host`. Evaluates to the functions that
// the Rust side calls; nothing of it is a global.
(function (send, expired, outputLimit) {
  "use strict";
  const {
    Array, BigInt, Date, Error, EvalError, Function, Iterator, JSON, Map, Math, Number, Object,
    Promise, RangeError, RegExp, String, Symbol, TypeError,
  } = globalThis;
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply } = Reflect;
  const { isArray } = Array;
  const stringify = JSON.stringify;
  const parse = JSON.parse;
  const slice = String.prototype.slice;
  const cut = (text, most) => apply(slice, text, [0, most]);

  // ---- taken away -------------------------------------------------------------------------

  for (const name of ["Atomics", "SharedArrayBuffer", "eval"]) delete globalThis[name];
  const noCode = {
    Function() { throw new EvalError("code cannot be made from text in a tool"); },
  }.Function;
  for (const f of [function () {}, function* () {}, async function () {}, async function* () {}]) {
    const proto = getPrototypeOf(f);
    defineProperty(proto, "constructor", { value: noCode, writable: false, configurable: false });
  }
  defineProperty(noCode, "prototype", { value: Function.prototype });
  put(globalThis, "Function", noCode);
  put(globalThis, "eval", { eval() { return noCode(); } }.eval);

  function put(object, name, value) {
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });
  }

  // No clock, and no zone of the machine: dates are made from what is given, in UTC.
  const noClock = () => {
    throw new TypeError("a tool has no clock: take the time as an argument, or call a tool that tells it");
  };
  const zoned = /(?:Z|[+-]\d\d:?\d\d|\b(?:GMT|UTC|UT|[ECMP][SD]T)\b.*)\s*(?:\([^)]*\)\s*)?$/i;
  const dateOnly = /^\s*[+-]?\d{4,6}(?:-\d\d){0,2}\s*$/;
  const isoTime = /^\s*[+-]?\d{4,6}(?:-\d\d){0,2}T[\d:.,]+\s*$/;
  const nativeParse = Date.parse;
  const parseDate = (text) => {
    text = `${text}`;
    if (text.length > 200) return NaN;
    if (apply(RegExp.prototype.test, dateOnly, [text])) return nativeParse(text);
    if (apply(RegExp.prototype.test, isoTime, [text])) return nativeParse(text + "Z");
    if (apply(RegExp.prototype.test, zoned, [text])) return nativeParse(text);
    return nativeParse(text + " UTC");
  };
  class ToolDate extends Date {
    constructor(...parts) {
      if (parts.length === 0) noClock();
      if (parts.length > 1) {
        super(apply(Date.UTC, undefined, parts));
        return;
      }
      let only = parts[0];
      if (typeof only === "object" && only !== null && !(only instanceof Date)) {
        only = only[Symbol.toPrimitive] || typeof only.valueOf() === "object" ? `${only}` : only.valueOf();
      }
      super(typeof only === "string" ? parseDate(only) : only);
    }
    static now() { return noClock(); }
    static parse(text) { return parseDate(text); }
  }
  const D = Date.prototype;
  for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    put(D, `get${part}`, D[`getUTC${part}`]);
    if (part !== "Day") put(D, `set${part}`, D[`setUTC${part}`]);
  }
  put(D, "getTimezoneOffset", { getTimezoneOffset() { return this.getTime() * 0; } }.getTimezoneOffset);
  put(D, "getYear", { getYear() { return this.getUTCFullYear() - 1900; } }.getYear);
  const toUTC = D.toUTCString;
  const iso = D.toISOString;
  const bad = (date) => date.getTime() !== date.getTime();
  const two = (date, from, to) => (bad(date) ? "Invalid Date" : apply(iso, date, []).slice(from, to));
  put(D, "toString", { toString() { return bad(this) ? "Invalid Date" : apply(toUTC, this, []); } }.toString);
  put(D, "toDateString", { toDateString() { return two(this, 0, -14); } }.toDateString);
  put(D, "toTimeString", { toTimeString() { return two(this, -13, -5); } }.toTimeString);
  put(D, "toLocaleString", { toLocaleString() { return this.toString(); } }.toLocaleString);
  put(D, "toLocaleDateString", { toLocaleDateString() { return this.toDateString(); } }.toLocaleDateString);
  put(D, "toLocaleTimeString", { toLocaleTimeString() { return this.toTimeString(); } }.toLocaleTimeString);
  const FakeDate = function Date(...parts) {
    return new.target ? Reflect.construct(ToolDate, parts, new.target === FakeDate ? ToolDate : new.target) : noClock();
  };
  for (const name of ["now", "parse"]) put(FakeDate, name, ToolDate[name]);
  put(FakeDate, "UTC", Date.UTC);
  defineProperty(FakeDate, "prototype", { value: ToolDate.prototype });
  put(ToolDate.prototype, "constructor", FakeDate);
  put(D, "constructor", FakeDate);
  put(globalThis, "Date", FakeDate);

  // Numbers from a seed of the host's: no clock behind them, and none for secrets.
  let state = 1;
  put(Math, "random", {
    random() {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    },
  }.random);

  // ---- bounded ----------------------------------------------------------------------------
  // The engine looks at the time between steps of a script and inside many of its own loops, but
  // not in all. Those that it would run for hours are held back here.

  const MOST_ITEMS = 5_000_000;
  const MOST_WORK = 1_000_000_000;
  const tooLong = (what) => { throw new RangeError(`${what} is too long for a tool`); };

  function wrap(object, name, before) {
    const native = object[name];
    if (typeof native !== "function") return;
    const wrapped = {
      [name](...args) {
        expired();
        return apply(native, before(this, args) ?? this, args);
      },
    }[name];
    defineProperty(wrapped, "length", { value: native.length, configurable: true });
    put(object, name, wrapped);
  }

  // The length of what an array method is called on must be plain: a computed one could be
  // another one when the method asks.
  function boundedArray(self) {
    if (self === null || self === undefined) return undefined;
    if (typeof self !== "string" && !isArray(self)) {
      const object = Object(self);
      const own = getOwnPropertyDescriptor(object, "length");
      const plain = own ? "value" in own && ["number", "string", "undefined"].includes(typeof own.value) : !("length" in object);
      if (!plain) throw new TypeError("array methods need an array, or an object with a number as its own length");
    }
    if (self.length > MOST_ITEMS) tooLong("the array");
    return undefined;
  }
  const TypedArray = getPrototypeOf(Uint8Array);
  for (const name of [
    "copyWithin", "fill", "join", "reverse", "shift", "slice", "sort", "splice",
    "toLocaleString", "toReversed", "toSorted", "toSpliced", "unshift", "with",
  ]) wrap(Array.prototype, name, boundedArray);
  wrap(TypedArray.prototype, "sort", () => undefined);
  wrap(TypedArray.prototype, "toSorted", () => undefined);

  function flatten(into, from, depth) {
    boundedArray(from);
    for (let i = 0; i < from.length; i++) {
      if (!(i in from)) continue;
      if (depth >= 1 && isArray(from[i])) flatten(into, from[i], depth - 1);
      else into[into.length] = from[i];
    }
    return into;
  }
  put(Array.prototype, "flat", { flat(depth = 1) { return flatten([], this, +depth || 0); } }.flat);
  const map = Array.prototype.map;
  put(Array.prototype, "flatMap", {
    flatMap(f, self) { boundedArray(this); return flatten([], apply(map, this, [f, self]), 1); },
  }.flatMap);
  put(Array.prototype, "concat", {
    concat(...others) {
      const all = [];
      for (const part of [this, ...others]) {
        const spread = typeof part === "object" && part !== null ? part[Symbol.isConcatSpreadable] : false;
        if (spread ?? isArray(part)) {
          boundedArray(part);
          const start = all.length;
          const length = part.length >>> 0;
          for (let i = 0; i < length; i++) if (i in part) all[start + i] = part[i];
          if (all.length < start + length) all.length = start + length;
        } else all[all.length] = part;
      }
      return all;
    },
  }.concat);
  put(String, "raw", {
    raw(strings, ...values) {
      const { raw } = strings;
      let text = "";
      for (let i = 0; i < raw.length; i++) {
        text += `${raw[i]}`;
        if (i + 1 < raw.length && i < values.length) text += `${values[i]}`;
      }
      return text;
    },
  }.raw);
  if (Iterator?.prototype?.drop) {
    wrap(Iterator.prototype, "drop", (_, args) => {
      args[0] = +args[0];
      if (args[0] > MOST_ITEMS) tooLong("what is dropped");
    });
  }

  const text = (value) => (typeof value === "string" ? value : `${value}`);
  const isText = (value) => typeof value !== "object" || value === null;
  for (const [name, symbol] of [
    ["indexOf"], ["lastIndexOf"], ["includes"],
    ["split", Symbol.split], ["replace", Symbol.replace], ["replaceAll", Symbol.replace],
  ]) {
    wrap(String.prototype, name, (self, args) => {
      if (self === null || self === undefined) return undefined;
      if (args.length === 0 || args[0] === undefined) return text(self);
      if (!isText(args[0])) {
        if (symbol ? args[0][symbol] : args[0] instanceof RegExp) return undefined;
      }
      args[0] = text(args[0]);
      const hay = text(self);
      if (hay.length * args[0].length > MOST_WORK && args[0].length > 64) tooLong("the text to search");
      return hay;
    });
  }
  // Sorting a long run of combining marks takes the square of its length.
  const marks = /\p{M}{500}/u;
  const boundedMarks = (value) => {
    value = text(value);
    if (value.length > 20_000 && apply(RegExp.prototype.test, marks, [value])) tooLong("a run of combining marks");
    return value;
  };
  for (const name of ["normalize", "localeCompare"]) {
    wrap(String.prototype, name, (self, args) => {
      if (self === null || self === undefined) return undefined;
      if (name === "localeCompare") args[0] = boundedMarks(args[0]);
      return boundedMarks(self);
    });
  }
  for (const name of ["match", "matchAll", "search", "repeat", "padStart", "padEnd", "toUpperCase", "toLowerCase"]) {
    wrap(String.prototype, name, () => undefined);
  }
  wrap(JSON, "parse", () => undefined);
  wrap(JSON, "stringify", (_, args) => {
    if (isArray(args[1]) && args[1].length > 100_000) tooLong("the list of keys");
  });

  // ---- host -------------------------------------------------------------------------------

  const waiting = new Map();
  const get = Map.prototype.get, set = Map.prototype.set, remove = Map.prototype.delete;
  let lastId = 0;
  const json = (value, what) => {
    const written = stringify(value);
    if (written === undefined) throw new TypeError(`${what} must be JSON`);
    if (written.length > outputLimit) throw new RangeError(`${what} is ${written.length} characters of JSON, at most ${outputLimit} are allowed`);
    return written;
  };
  const ask = (kind, payload) =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      send(kind, id, payload);
      apply(set, waiting, [id, { resolve, reject }]);
    });
  const show = (value) => {
    if (typeof value === "string") return value;
    try { return stringify(value) ?? String(value); } catch { return describe(value); }
  };
  const log = (...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + show(values[i]);
    if (line.length > 8192) line = cut(line, 8192) + "…";
    send("log", 0, stringify(line));
  };
  const host = {
    __proto__: null,
    log,
    progress(value) { send("progress", 0, json(value === undefined ? null : value, "progress")); },
    async callTool(name, args = {}) {
      return parse(await ask("callTool", json({ name: String(name), args }, "the arguments of callTool")));
    },
    async fetch(url, options = {}) {
      const { method, headers, body } = options ?? {};
      const reply = parse(await ask("fetch", json({ url: String(url), method, headers, body }, "the request of fetch")));
      const { body: got } = reply;
      delete reply.body;
      reply.ok = reply.status >= 200 && reply.status < 300;
      put(reply, "text", { text() { return got; } }.text);
      put(reply, "json", { json() { return parse(got); } }.json);
      return reply;
    },
  };
  Object.freeze(host);
  const console = { __proto__: null };
  for (const name of ["log", "info", "warn", "error", "debug"]) console[name] = log;
  put(globalThis, "console", console);

  // ---- what the Rust side calls -----------------------------------------------------------

  function describe(error) {
    try {
      if (typeof error === "object" && error !== null) {
        const { name, message } = error;
        if (typeof message === "string" && message !== "") {
          return typeof name === "string" && name !== "" ? `${name}: ${message}` : message;
        }
        if (typeof name === "string" && typeof message === "string") return name;
        return stringify(error) ?? "an error without a text";
      }
      return String(error);
    } catch {
      return "an error that cannot be shown";
    }
  }
  function place(error) {
    try {
      const stack = typeof error === "object" && error !== null ? error.stack : undefined;
      return typeof stack === "string" ? cut(stack, 4000) : "";
    } catch {
      return "";
    }
  }
  return {
    __proto__: null,
    // Where random numbers begin, once for each job.
    seed(seed) { state = seed >>> 0 || 1; },
    // What an error is, and where, as two texts.
    explain(error) { return [cut(describe(error), 4000), place(error)]; },
    // The names of the functions that a module exports.
    functions(module) {
      const names = [];
      for (const name of ["prepare", "validate", "execute"]) {
        if (typeof module[name] === "function") names[names.length] = name;
        else if (module[name] !== undefined) throw new TypeError(`the export ${name} must be a function`);
      }
      return stringify(names);
    },
    // A value as JSON; nothing for what has none.
    json(value) { return value === undefined ? "null" : json(value, "the value"); },
    // Calls an exported function; the promise holds the JSON of its result. A function that
    // returns nothing and may change its arguments in place gives those.
    async call(f, args, changes) {
      args = parse(args);
      let result = await f(args, host);
      if (changes && (result === undefined || result === null)) result = args;
      return result === undefined ? "null" : json(result, "the result");
    },
    // Settles what `ask` waits for.
    settle(id, ok, payload) {
      const { resolve, reject } = apply(get, waiting, [id]) ?? {};
      apply(remove, waiting, [id]);
      if (ok) resolve?.(payload);
      else reject?.(new Error(payload));
    },
  };
})
