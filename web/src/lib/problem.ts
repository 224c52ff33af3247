import type { Problem } from '@vacancy/shared/contract'

/** A refusal of the control plane, or none of its answers reached us (`status` 0). */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  /** What was wrong; the message as well. */
  readonly detail: string
  /** What to do. */
  readonly hint: string
  readonly field: string | undefined
  readonly requestId: string
  /** What was asked: `GET /api/v1/shards`. */
  readonly asked: string
  /** The whole answer, for what a program needs of it: `plan` of `plan-out-of-date`. */
  readonly more: { readonly [name: string]: unknown }

  constructor(asked: string, problem: Problem, more: { readonly [name: string]: unknown } = {}, cause?: unknown) {
    super(problem.detail || problem.title, { cause })
    this.name = 'ApiProblem'
    this.status = problem.status
    this.code = problem.code
    this.detail = this.message
    this.hint = problem.hint
    this.field = problem.field
    this.requestId = problem.requestId
    this.asked = asked
    this.more = more
  }
}
