// Reads the shapes of events from the TypeScript declarations of a package: `node types.mjs FOLDER KIND... < TYPES`
//
// FOLDER has the package in node_modules, with `typescript` beside it. TYPES is TypeScript whose `Root` is an event, or
// a union of them; KIND are the places of the literals that name a kind, outermost first: `event.type`. Written to
// standard output: {kind: shape}, as `shapes.py` has them. What may be missing is left out, or kept with a question
// mark where KIND starts with one; what is declared as one of several objects is the first of them.

import { createRequire } from "node:module"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const [folder, ...named] = process.argv.slice(2)
const types = readFileSync(0, "utf8")
const places = named.map((each) => each.replace("?", ""))
const keepsOptional = named.some((each) => each.startsWith("?"))
const ts = createRequire(join(folder, "x.js"))("typescript")
const DEEP = 7
const file = join(folder, "root.ts")
writeFileSync(file, types)
const program = ts.createProgram([file], {
  strict: true, skipLibCheck: true, noEmit: true, target: 99, module: 199, moduleResolution: 99, types: ["node"],
})
const checker = program.getTypeChecker()
const source = program.getSourceFile(file)
const root = checker.getTypeAtLocation(source.statements.find((each) => each.name?.text === "Root"))
const has = (type, flag) => (type.flags & flag) !== 0

function shape(type, seen) {
  if (has(type, ts.TypeFlags.StringLiteral)) return `=${type.value}`
  if (has(type, ts.TypeFlags.StringLike)) return "string"
  if (has(type, ts.TypeFlags.NumberLike | ts.TypeFlags.BigIntLike)) return "number"
  if (has(type, ts.TypeFlags.BooleanLike)) return "boolean"
  if (has(type, ts.TypeFlags.Null)) return "null"
  if (type.isUnion()) return either(type.types, seen)
  if (type.symbol?.name === "Date") return "string"
  if (checker.isArrayType(type)) return [shape(checker.getTypeArguments(type)[0], seen)]
  if (checker.isTupleType(type)) return checker.getTypeArguments(type).slice(0, 1).map((each) => shape(each, seen))
  if (type.isTypeParameter() || !(has(type, ts.TypeFlags.Object) || type.isIntersection())) return "null"
  if (seen.length > DEEP || seen.includes(type)) return "null"
  if (checker.getSignaturesOfType(type, 0).length) return "null"
  return Object.fromEntries(members(type).map(([name, inner]) => [name, shape(inner, [...seen, type])]))
}

function members(type) {
  return checker.getPropertiesOfType(type)
    .map((each) => [each, checker.getTypeOfSymbolAtLocation(each, source)])
    .map(([each, inner]) => [each.name, inner, !!(each.flags & ts.SymbolFlags.Optional) || mayBeMissing(inner)])
    .filter(([, inner, isOptional]) => keepsOptional || !isOptional)
    .map(([name, inner, isOptional]) => [isOptional ? `${name}?` : name, without(inner)])
    .filter(([, inner]) => !has(inner, ts.TypeFlags.Undefined | ts.TypeFlags.Never))
    .filter(([, inner]) => !checker.getSignaturesOfType(inner, 0).length)
}

// A type without undefined: what is optional is this, or missing.
const without = (type) => (mayBeMissing(type) ? checker.getNonNullableType(type) : type)

const mayBeMissing = (type) => type.isUnion() && type.types.some((each) => has(each, ts.TypeFlags.Undefined))

function either(members, seen) {
  const made = members.filter((each) => !has(each, ts.TypeFlags.Undefined)).map((each) => shape(each, seen))
  const large = made.find((each) => typeof each === "object")
  if (large && !made.includes("string")) return made.includes("null") ? "null" : large
  const names = made.filter((each) => typeof each === "string").map((each) => (each.startsWith("=") ? (made.length > 1 ? "string" : each) : each))
  return [...new Set(names)].sort().join("|")
}

function literals(type, path) {
  const [name, ...rest] = path
  if (name === undefined) {
    const all = type.isUnion() ? type.types : [type]
    return all.filter((each) => each.isStringLiteral()).map((each) => each.value)
  }
  const all = type.isUnion() ? type.types : [type]
  const found = all.flatMap((each) => {
    const property = checker.getPropertyOfType(each, name)
    return property ? literals(checker.getTypeOfSymbolAtLocation(property, source), rest) : []
  })
  return [...new Set(found)]
}

function put(shape, [name, ...rest], value) {
  if (shape && typeof shape === "object" && `${name}?` in shape) name = `${name}?`
  if (shape && typeof shape === "object" && name in shape)
    shape[name] = rest.length ? put(shape[name], rest, value) : `=${value}`
  return shape
}

const kinds = {}
for (const member of root.isUnion() ? root.types : [root]) {
  let named = [["", []]]
  for (const place of places) {
    const path = place.split(".")
    const values = literals(member, path)
    if (values.length)
      named = named.flatMap(([name, puts]) =>
        values.map((value) => [name ? `${name}.${value}` : value, [...puts, [path, value]]]))
  }
  for (const [name, puts] of named) {
    const made = structuredClone(shape(member, []))
    for (const [path, value] of puts) put(made, path, value)
    const spare = (at) => (at ? `${name}#${at}` : name)
    let at = 0
    while (spare(at) in kinds) at += 1
    kinds[spare(at)] ??= made
  }
}
process.stdout.write(JSON.stringify(kinds))
