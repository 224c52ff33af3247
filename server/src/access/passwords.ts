/** Passwords as Argon2id (RFC 9106) in PHC strings, with the parameters that OWASP names: 19 MiB, 2 passes. */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const MEMORY_KIB = 19_456
const PASSES = 2
const LANES = 1
const SALT_BYTES = 16
const HASH_BYTES = 32

const derive = promisify(argon2) as (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer>

/** Normalized, so that the same text typed on different keyboards is the same password. */
function bytesOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'))
}

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive('argon2id', {
    message: bytesOf(password),
    nonce: salt,
    parallelism: LANES,
    tagLength: HASH_BYTES,
    memory: MEMORY_KIB,
    passes: PASSES,
  })
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${base64(salt)}$${base64(hash)}`
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** Verified for unknown names, so that they take the same time as a wrong password. */
const DUMMY_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${base64(Buffer.alloc(SALT_BYTES))}$${base64(Buffer.alloc(HASH_BYTES))}`

/** Whether a password matches a PHC string. Without one the result is false, after the same time. */
export async function isPassword(password: string, phc: string | null): Promise<boolean> {
  const known = phc === null ? null : PHC.exec(phc)
  const [, memory, passes, parallelism, salt = '', hash = ''] = known ?? PHC.exec(DUMMY_HASH) ?? []
  const wanted = Buffer.from(hash, 'base64')
  const found = await derive('argon2id', {
    message: bytesOf(password),
    nonce: Buffer.from(salt, 'base64'),
    parallelism: Number(parallelism),
    tagLength: wanted.length,
    memory: Number(memory),
    passes: Number(passes),
  })
  return timingSafeEqual(found, wanted) && known !== null
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
