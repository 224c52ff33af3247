/** Files that are often given in place of CSV in UTF-8, by their first bytes. Texts complete "hotels.csv …". */

const FORMATS = {
  gzip: { is: 'is compressed', fix: 'unpack it first' },
  utf16: { is: 'is UTF-16', fix: 'save it as UTF-8, or use vacancy import-source with "encoding": "utf-16le"' },
  latin1: {
    is: 'is not UTF-8: it looks like Windows-1252 or Latin-1',
    fix: 'save it as UTF-8, or use vacancy import-source with "encoding": "windows-1252"',
  },
  workbook: { is: 'is an Excel workbook', fix: 'save it as CSV UTF-8' },
  zip: { is: 'is a ZIP archive', fix: 'unpack it first' },
} as const

export type FileFormat = { readonly name: keyof typeof FORMATS; readonly is: string; readonly fix: string }

/** Enough to tell all of them. */
export const FORMAT_BYTES = 64
/** Where a ZIP archive has the name of its first file. */
const ZIP_NAME = 30
/** The first file of a workbook is one of these, in any program's order. */
const OF_WORKBOOK = /^(?:\[Content_Types\]|_rels\/|docProps\/|xl\/)/

/** @param head at least the first FORMAT_BYTES of a file, or all of it. @returns undefined for what may be CSV */
export function formatOf(head: Uint8Array): FileFormat | undefined {
  const name = nameOf(head)
  return name && { name, ...FORMATS[name] }
}

function nameOf(head: Uint8Array): FileFormat['name'] | undefined {
  const begins = (...bytes: readonly number[]) => bytes.every((byte, at) => head[at] === byte)
  if (begins(0x1f, 0x8b)) return 'gzip'
  if (begins(0xff, 0xfe) || begins(0xfe, 0xff) || isUtf16(head)) return 'utf16'
  // Of Excel before 2007.
  if (begins(0xd0, 0xcf, 0x11, 0xe0)) return 'workbook'
  if (!begins(0x50, 0x4b, 3, 4)) return isLatin1(head) ? 'latin1' : undefined
  return OF_WORKBOOK.test(String.fromCharCode(...head.subarray(ZIP_NAME, FORMAT_BYTES))) ? 'workbook' : 'zip'
}

/** Without a byte order mark: every other byte of Latin text is 0. */
function isUtf16(head: Uint8Array): boolean {
  const zeros = [0, 1].map((from) => {
    let count = 0
    for (let at = from; at < 16; at += 2) if (head[at] === 0) count++
    return count
  })
  return head.length >= 16 && zeros.includes(8) && zeros.includes(0)
}

/** Text in one byte a letter has letters beyond ASCII inside its words, and nothing that is valid UTF-8 beyond ASCII. */
function isLatin1(head: Uint8Array): boolean {
  let hasWord = false
  for (let at = 1; at + 1 < head.length; at++) {
    const byte = head[at] as number
    if (byte < 0x80) continue
    const follows = (head[at + 1] as number) >>> 6 === 2
    if (byte >= 0xc0 && follows) return false
    if (byte >= 0xc0 && isLetter(head[at - 1]) && isLetter(head[at + 1])) hasWord = true
  }
  return hasWord
}

function isLetter(byte = 0): boolean {
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x7a
}
