/**
 * One session of PostgreSQL. Every request has a time limit, and after its first failure a session is never used again:
 * what it left behind is unknown, and its locks may be gone.
 */
import { Socket } from 'node:net'
import pg from 'pg'

export type Session = {
  readonly client: pg.Client
  readonly socket: Socket
  /** Why it cannot be used any more. */
  failure: Error | undefined
  /** Called once, in the moment in which it fails. */
  onFailure: (why: Error) => void
  /** Requests without a response. */
  readonly waiting: Set<(why: Error) => void>
}
/** `copied`: the messages that follow a COPY. */
export type Request = pg.QueryConfig & { readonly rowMode?: 'array'; readonly copied?: Buffer }

const CONNECT_MS = 10_000
const CLOSE_MS = 2_000
/** A request that PostgreSQL does not answer in this time fails the session. */
const REQUEST_MS = 5_000
/**
 * PostgreSQL ends a session that sends nothing for this long, and its locks with it: another process takes over from an
 * owner that is frozen or unreachable. Longer than an owner needs to notice the same: a heartbeat and its limit.
 */
const ABANDONED_MS = 8_000
/** Of the TCP connection, in seconds: a host that disappeared is noticed after 11. */
const KEEPALIVE = { idle: 5, interval: 2, probes: 3, total: 11 }
/** idle_session_timeout is older than any version that is still maintained. */
const VERSION_MIN = 140_000
/** Longer than any limit of a request. */
const STATEMENT_MS = 40_000
/** While it works or waits for a lock, PostgreSQL looks this often whether this process is still there. */
const CLIENT_CHECK_MS = 2_000

/** @throws Error when the server is not reachable, refuses the connection, or cannot be written to */
export async function openSession(url: string, name: string, signal: AbortSignal): Promise<Session> {
  signal.throwIfAborted()
  const socket = new Socket()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE.idle * 1000,
    pipeline: true,
    stream: () => socket,
  })
  client.setTypeParser(pg.types.builtins.INT8, Number)
  const session: Session = { client, socket, failure: undefined, onFailure: () => undefined, waiting: new Set() }
  client.on('error', (error) => failSession(session, error))
  client.on('end', () => failSession(session, new Error('PostgreSQL closed the connection')))
  const abort = () => failSession(session, new Error('stopped'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await client.connect()
    await prepareSession(session, name)
    return session
  } catch (error) {
    failSession(session, error as Error)
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Settings for its lifetime. Not as options of the connection, which poolers refuse. */
async function prepareSession(session: Session, name: string): Promise<void> {
  const { rows } = await ask<{ version: number; encoding: string; read_only: string }>(session, {
    text: `select current_setting('server_version_num')::int4 as version, current_setting('server_encoding') as encoding,
      current_setting('transaction_read_only') as read_only`,
  })
  const { version = 0, encoding, read_only } = rows[0] ?? {}
  if (version < VERSION_MIN) throw new Error(`PostgreSQL ${VERSION_MIN / 10_000} or newer is needed`)
  if (encoding !== 'UTF8') throw new Error(`the database has the encoding ${encoding}; create one with UTF8`)
  if (read_only !== 'off') throw new Error('the server is read-only, such as a replica; connect to the primary')
  const settings = [
    `application_name = ${pg.escapeLiteral(name)}`,
    `idle_session_timeout = ${ABANDONED_MS}`,
    `statement_timeout = ${STATEMENT_MS}`,
    `idle_in_transaction_session_timeout = ${ABANDONED_MS}`,
    `tcp_keepalives_idle = ${KEEPALIVE.idle}`,
    `tcp_keepalives_interval = ${KEEPALIVE.interval}`,
    `tcp_keepalives_count = ${KEEPALIVE.probes}`,
    `tcp_user_timeout = ${KEEPALIVE.total * 1000}`,
  ]
  await ask(session, { text: settings.map((setting) => `set ${setting}`).join('; ') })
  // Refused by servers on systems that cannot tell; then the limit of a statement is what ends it.
  await askAll(session, [{ text: `set client_connection_check_interval = ${CLIENT_CHECK_MS}` }])
}

/** Sends a request. @throws Error of PostgreSQL, or the failure of the session */
export async function ask<Row extends pg.QueryResultRow>(
  session: Session,
  request: Request,
  limitMs = REQUEST_MS,
): Promise<pg.QueryResult<Row>> {
  const [settled] = await askAll<Row>(session, [request], limitMs)
  if (settled?.status === 'fulfilled') return settled.value
  throw settled?.reason
}

/**
 * Sends requests one after the other without waiting for responses in between. All of them are sent on this session, or
 * none: nothing is awaited between the check and the last byte.
 *
 * @throws Error the failure of the session; errors of single requests are in the result
 */
export function askAll<Row extends pg.QueryResultRow>(
  session: Session,
  requests: readonly Request[],
  limitMs = REQUEST_MS,
): Promise<PromiseSettledResult<pg.QueryResult<Row>>[]> {
  if (session.failure !== undefined) return Promise.reject(session.failure)
  session.socket.cork()
  const responses = requests.map((request) =>
    request.copied === undefined
      ? session.client.query<Row>(request)
      : copyIn(session.client, request.text, request.copied),
  )
  session.socket.uncork()
  return new Promise((resolve, reject) => {
    const expire = () => {
      const seconds = limitMs / 1000
      // After a pause of this process the response may be there, unread.
      setImmediate(() => {
        if (session.waiting.has(reject))
          failSession(session, new Error(`PostgreSQL did not respond within ${seconds} s`))
      })
    }
    const timer = setTimeout(expire, limitMs)
    session.waiting.add(reject)
    void Promise.allSettled(responses).then((settled) => {
      clearTimeout(timer)
      session.waiting.delete(reject)
      if (session.failure === undefined) resolve(settled)
      else reject(session.failure)
    })
  })
}

/**
 * Sends the rows right behind the statement. After an error PostgreSQL drops them: outside of a COPY it ignores the
 * messages of one.
 */
class CopyIn extends pg.Query {
  readonly statement: string
  readonly copied: Buffer
  constructor(statement: string, copied: Buffer, callback: (error: Error | undefined, result: pg.QueryResult) => void) {
    super(statement, callback)
    this.statement = statement
    this.copied = copied
  }
  override submit = (connection: pg.Connection): void => {
    connection.query(this.statement)
    connection.stream.write(this.copied)
  }
  /** The rows are on their way. */
  handleCopyInResponse(): void {}
}

function copyIn(client: pg.Client, statement: string, copied: Buffer): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | undefined, result: pg.QueryResult) => (error ? reject(error) : resolve(result))
    client.query(new CopyIn(statement, copied, settle))
  })
}

/** Ends it at once. What is waiting fails, and nothing is sent any more. */
export function failSession(session: Session, why: Error): void {
  if (session.failure !== undefined) return
  session.failure = why
  session.socket.destroy()
  for (const reject of session.waiting) reject(why)
  session.waiting.clear()
  session.onFailure(why)
}

/** Ends it after the requests that wait; their locks are free when this resolves. */
export async function closeSession(session: Session): Promise<void> {
  if (session.failure !== undefined) return
  session.failure = new Error('the session is closed')
  const timer = setTimeout(() => session.socket.destroy(), CLOSE_MS)
  await session.client.end()
  clearTimeout(timer)
}
