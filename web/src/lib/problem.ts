import type { Problem } from '@vacancy/shared/contract'

/** An error response of the control plane; `status` 0 when there was no response. */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  /** What was wrong; also the message. */
  readonly detail: string
  /** What to do. */
  readonly hint: string
  readonly field: string | undefined
  readonly requestId: string
  /** `GET /api/v1/shards`. */
  readonly request: string
  /** The whole body, for fields of a certain code such as `plan` of `plan-out-of-date`. */
  readonly more: { readonly [name: string]: unknown }

  constructor(request: string, problem: Problem, more: { readonly [name: string]: unknown } = {}, cause?: unknown) {
    super(problem.detail || problem.title, { cause })
    this.name = 'ApiProblem'
    this.status = problem.status
    this.code = problem.code
    this.detail = this.message
    this.hint = problem.hint
    this.field = problem.field
    this.requestId = problem.requestId
    this.request = request
    this.more = more
  }
}
