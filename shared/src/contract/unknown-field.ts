/** Finds what a schema would drop in silence: fields that it does not have, such as misspelt ones. */
import type { z } from 'zod'
import { nearestName } from '../index.ts'

export type UnknownField = {
  /** Names and positions from the value to the field, which is the last one. */
  readonly path: readonly string[]
  /** The known name that it resembles. */
  readonly nearest: string | undefined
}

type Definition = {
  readonly type: string
  readonly shape?: { readonly [name: string]: z.core.$ZodType }
  readonly catchall?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
  readonly element?: z.core.$ZodType
  readonly valueType?: z.core.$ZodType
  readonly in?: z.core.$ZodType
  readonly options?: readonly z.core.$ZodType[]
  readonly values?: readonly unknown[]
}

/** The first unknown field of a value, at any depth; undefined when there is none, or the schema accepts any. */
export function unknownField(schema: z.core.$ZodType, value: unknown): UnknownField | undefined {
  const { shape, catchall, innerType, element, valueType, options, in: input } = definitionOf(schema)
  if (value === undefined || value === null) return undefined
  const inner = innerType ?? input
  if (inner !== undefined) return unknownField(inner, value)
  if (options !== undefined) return unknownInUnion(options, value)
  if (typeof value !== 'object') return undefined
  const nested = Array.isArray(value) ? element : valueType
  for (const [name, content] of Object.entries(value)) {
    const field = shape !== undefined && Object.hasOwn(shape, name) ? shape[name] : (nested ?? catchall)
    const isUnknown = shape !== undefined && (field === undefined || definitionOf(field).type === 'never')
    if (isUnknown && content !== undefined) return { path: [name], nearest: nearestName(name, Object.keys(shape)) }
    const found = field === undefined ? undefined : unknownField(field, content)
    if (found !== undefined) return { ...found, path: [name, ...found.path] }
  }
  return undefined
}

function definitionOf(schema: z.core.$ZodType): Definition {
  return schema._zod.def as unknown as Definition
}

/** A value of none of the forms, whose fields all belong to some of them, is left to the schema, which says what it needs. */
function unknownInUnion(options: readonly z.core.$ZodType[], value: unknown): UnknownField | undefined {
  let found: UnknownField | undefined
  const fitting = options.filter((option) => isOfForm(option, value))
  if (fitting.length === 0) return unknownInAll(options, value)
  for (const option of fitting) {
    const unknown = unknownField(option, value)
    if (unknown === undefined) return undefined
    found ??= unknown
  }
  return found
}

function unknownInAll(options: readonly z.core.$ZodType[], value: unknown): UnknownField | undefined {
  const shapes = options.map((option) => definitionOf(option).shape)
  const names = shapes.flatMap((shape) => Object.keys(shape ?? {}))
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject || shapes.includes(undefined)) return undefined
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  return unknown === undefined ? undefined : { path: [unknown], nearest: nearestName(unknown, names) }
}

/** Whether a value has the required fields of an object, and its fixed ones as they must be. */
function isOfForm(schema: z.core.$ZodType, value: unknown): boolean {
  const { shape, element } = definitionOf(schema)
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return shape === undefined
  if (element !== undefined) return false
  const fields = value as { readonly [name: string]: unknown }
  return Object.entries(shape ?? {}).every(([name, field]) => {
    const { values } = definitionOf(field)
    if (values !== undefined) return values.includes(fields[name])
    return field._zod.optin === 'optional' || fields[name] !== undefined
  })
}

/** Such as `sort: is not a known field; did you mean order?` */
export function unknownFieldText({ path, nearest }: UnknownField, kind = 'field'): string {
  const place = path.map((part) => part.slice(0, 100)).join('.')
  return `${place}: is not a known ${kind}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
}
