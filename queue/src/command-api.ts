/** Requests of commands to the API of a running queue. */
import { VacancyError } from '@vacancy/shared'
import { problemBody } from '@vacancy/shared/contract'
import { VERSION } from '@vacancy/shared/node'
import { type Access, jsonOf, readAuthorities, readToken, type Schema, send, usage } from '@vacancy/shared/node-api'

export type Api = Access & {
  /** Base address, without a slash at its end. */
  readonly url: string
}

type ApiFlags = {
  readonly url: string
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  readonly tlsCa: string | undefined
}

/** A page of dead jobs with their payloads. */
const ANSWER_BYTES_MAX = 512 << 20

/** @throws VacancyError usage_error */
export function openApi({ url, token, tokenFile, tlsCa }: ApiFlags): Api {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw usage(`--url: ${url} is not an address such as http://127.0.0.1:8080`)
  if (token !== undefined && tokenFile !== undefined) throw usage('give --token or --token-file, not both')
  // Never printed, not even when it is invalid.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw usage('--token has characters that no token has')
  return {
    url: url.replace(/\/+$/, ''),
    nodes: [],
    token: token ?? readToken(tokenFile),
    ca: readAuthorities(tlsCa),
    answerBytesMax: ANSWER_BYTES_MAX,
  }
}

/**
 * @param path below `/api/v1/queue`
 * @throws VacancyError connection_failed, connection_lost; failure for any response except one with the schema
 */
export async function callApi<T>(
  api: Api,
  method: 'GET' | 'POST',
  path: string,
  schema: Schema<T>,
  body?: object,
): Promise<T> {
  const { host } = new URL(api.url)
  const text = body === undefined ? '' : JSON.stringify(body)
  const reply = await send(api, method, `${api.url}/api/v1/queue${path}`, text)
  const value = jsonOf(reply.body)
  if (reply.status >= 400) throw refusal(host, reply.status, value)
  const { data } = schema.safeParse(value)
  if (data === undefined)
    throw new VacancyError('failure', { reason: `${host} does not respond like a queue of version ${VERSION}` })
  return data
}

const HINTS: { readonly [status: number]: string } = {
  401: ' Give a token with --token, --token-file or VACANCY_QUEUE_TOKEN.',
  403: ' Use a token with another role.',
}

function refusal(host: string, status: number, value: unknown): VacancyError {
  const problem = problemBody.safeParse(value).data
  const text = problem === undefined ? '' : `: ${problem.detail}`
  const owner = (value as { readonly owner?: unknown } | undefined)?.owner
  const elsewhere = typeof owner === 'string' ? ` Use --url ${owner}.` : ''
  return new VacancyError('failure', {
    reason: `${host} responded with ${status}${problem === undefined ? '' : ` ${problem.code}`}${text}${HINTS[status] ?? elsewhere}`,
  })
}
