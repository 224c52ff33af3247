/** Planted defects: one rule of the product broken, which what runs here must notice (docs/design/testing.md#planted-defects). */
import type { Planted } from '@vacancy/testkit/plant'

export type Defect = Planted & {
  /** Arguments of `proofs`, or the file of tests that fails. */
  readonly foundBy: { readonly proof: readonly string[] } | { readonly tests: string; readonly named?: string }
}

/** A path below the folder of the list, what stands there once, and what stands there instead. */
type Edit = readonly [file: string, from: string, to: string]

export type Row = { readonly name: string; readonly edits: readonly Edit[]; readonly foundBy: Defect['foundBy'] }

export function inFolder(folder: string, rows: readonly Row[]): Defect[] {
  return rows.map(({ name, edits, foundBy }) => ({
    name,
    foundBy,
    edits: edits.map(([file, from, to]) => ({ file: `${folder}/${file}`, from, to })),
  }))
}

/** A simulation of all machines that finds it, with a profile that triggers it sooner. */
export const simulated = (program: 'core' | 'log' | 'driver', profile: string): Defect['foundBy'] => ({
  proof: ['sim', '--program', program, '--profile', profile],
})
