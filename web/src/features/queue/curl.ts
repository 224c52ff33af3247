/** The same requests from a command line. Bodies come from a quoted here-document, where no character needs escaping. */

/** Where producers send jobs: the console and the queue share an origin. */
const origin = (): string => (typeof location === 'undefined' ? '' : location.origin)

function request(method: string, path: string, body: object): string {
  const verb = method === 'POST' ? '' : ` -X ${method}`
  return `curl -s${verb} --oauth2-bearer "$TOKEN" --json @- ${origin()}${path} <<'END'\n${JSON.stringify(body)}\nEND`
}

/** Creates a topic. */
export const topicCommand = (topic: string): string => request('POST', '/producer/topic', { topic })

export type NewJob = {
  readonly id: string
  readonly topic: string
  /** Base64; absent for the payload null. */
  readonly data?: string
  readonly priority?: number
  readonly delay_ms?: number
}

/** Submits a job. */
export const jobCommand = (job: NewJob): string => request('POST', '/producer/jobs', { job })
