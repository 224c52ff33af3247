/** Planted defects: one rule of the product broken, which what runs here must notice (docs/design/testing.md#planted-defects). */
import { assert } from '@vacancy/shared'
import type { Planted } from '@vacancy/testkit/plant'

export type Defect = Planted & {
  /** Arguments of `proofs`, or the file of tests that fails. */
  readonly foundBy: { readonly proof: readonly string[] } | { readonly tests: string; readonly named?: string }
}

/** `file: text → other text`: a path below the folder of the list, what stands there once, and what stands there instead. */
type Edit = string

/** Defects by name, in files of a folder, with what finds all of them. */
export const inFolder =
  (folder: string) =>
  (foundBy: Defect['foundBy'], defects: { readonly [name: string]: Edit | readonly Edit[] }): Defect[] =>
    Object.entries(defects).map(([name, edits]) => ({
      name,
      foundBy,
      edits: [edits].flat().map((edit) => editOf(folder, edit)),
    }))

function editOf(folder: string, edit: Edit) {
  const [, file, from, to] = /^([^:]+): (.+?) → (.*)$/s.exec(edit) ?? []
  assert(file && from && to !== undefined, `an edit is "file: text → other text", not "${edit}"`)
  return { file: `${folder}/${file}`, from, to }
}

/** A simulation of all machines that finds it, with a profile that triggers it sooner. */
export const simulated = (program: 'core' | 'driver', profile: string): Defect['foundBy'] => ({
  proof: ['sim', '--program', program, '--profile', profile],
})
