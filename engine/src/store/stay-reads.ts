/** Reads of stays between a serving thread and the replica thread, which has the ledger (tcp/stay-requests.ts). */

export const STAY_READ = { one: 1, list: 2 } as const

/** In place of a day: any. */
export const ANY_DAY = 0xffffffff

/** The cursor after a stay: its index and its packed id. */
export function cursorOf(index: number, id: Uint8Array): string {
  return `${index}-${Array.from(id, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
