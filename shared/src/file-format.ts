/** Files that are often given in place of CSV in UTF-8, by their first bytes. Texts complete "hotels.csv …". */

const FORMATS = {
  gzip: { is: 'is compressed', fix: 'unpack it first' },
  utf16: { is: 'is UTF-16', fix: 'save it as UTF-8' },
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

/** @param head the first FORMAT_BYTES of a file, or all of it. @returns undefined for what may be CSV */
export function formatOf(head: Uint8Array): FileFormat | undefined {
  const name = nameOf(head)
  return name && { name, ...FORMATS[name] }
}

function nameOf(head: Uint8Array): FileFormat['name'] | undefined {
  const begins = (...bytes: readonly number[]) => bytes.every((byte, at) => head[at] === byte)
  if (begins(0x1f, 0x8b)) return 'gzip'
  if (begins(0xff, 0xfe) || begins(0xfe, 0xff)) return 'utf16'
  // Of Excel before 2007.
  if (begins(0xd0, 0xcf, 0x11, 0xe0)) return 'workbook'
  if (!begins(0x50, 0x4b, 3, 4)) return undefined
  return OF_WORKBOOK.test(String.fromCharCode(...head.subarray(ZIP_NAME, FORMAT_BYTES))) ? 'workbook' : 'zip'
}
