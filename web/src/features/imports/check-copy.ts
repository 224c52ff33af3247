/** Texts of checking files in the browser. */
import { counted } from '../../lib/format.ts'

/** Each completes "hotels.csv …". */
export const fileFaults = {
  empty: 'is empty',
  utf16: 'is UTF-16: save it as UTF-8',
  zip: 'is a ZIP archive: unpack it, or compress it with gzip',
  nul: 'contains NUL bytes and is not text',
  noRows: 'has no rows',
  brokenLine: (line: number) => `has an unclosed quote or an overlong line in line ${line}`,
  columns: (columns: number, line: number, properties: number, packages: number) =>
    `has ${counted(columns, 'column')} in line ${line}; properties have ${properties}, packages ${packages}`,
  carriageReturns: '; lines end with a carriage return only',
}

export const check = {
  title: '3 Check',
  none: 'Files are checked as soon as you choose them.',
  elsewhere: 'These files are not in this browser. The build checks every row.',
  sampling: 'Checking a sample of the files.',
  all: 'Check every row here',
  stop: 'Stop checking',
  progress: 'Checking every row',
  failed: (reason: string) => `Could not check the files: ${reason}`,
  workerFailed: 'The check could not start.',
  inSample: (size: string) => `in a sample of ${size}`,
  result: (errors: number, rows: number, isSample: boolean) =>
    `${errors > 0 ? `${isSample ? 'At least ' : ''}${counted(errors, 'error')}` : 'No errors'} in ${counted(rows, 'row')}`,
  stopped: ' (stopped)',
  columnCount: (found: number, expected: number, text: string) => `${found} columns instead of ${expected}: ${text}`,
  inLine: (line: number, reason: string | undefined) => `line ${line} ${reason}`,
  nearest: (name: string, nearest: string) => `${name} (nearest: ${nearest})`,
}

export const findingsTable = {
  title: 'Findings',
  level: 'Level',
  file: 'File',
  finding: 'Finding',
  count: 'Count',
  firstLine: 'First line',
  lineUnknown: 'unknown',
  example: 'Example',
  card: (count: number, file: string, line: string | undefined, action: string) =>
    `${counted(count, 'time')} in ${file}${line === undefined ? '' : `, first in line ${line}`}. ${action}`,
  previews: 'First rows of the files',
  previewTab: (kind: string, hasHeader: boolean) => `${kind}, header: ${hasHeader ? 'yes' : 'no'}`,
  preview: (kind: string) => `First rows of ${kind}`,
  noRows: 'No rows to show.',
  invalid: ' (invalid)',
}

/** What a finding is, and what to do. */
export const findings = {
  header: {
    text: 'The header does not match the columns of the file',
    action: 'Correct the header, or remove it: files without a header are read by position.',
  },
  'header-names': {
    text: 'Unknown column names; read by position',
    action: 'Verify in the preview that each column matches its heading.',
  },
  order: {
    text: 'Columns in a different order; read by name',
    action: 'No action needed. Packages in the documented order are read faster.',
  },
  columns: {
    text: 'Wrong number of columns',
    action: 'Separate cells by commas, and quote cells that contain one.',
  },
  quote: {
    text: 'Unclosed quote, or text after a closing quote',
    action: 'Write a quote inside a quoted cell twice.',
  },
  long: { text: 'Line longer than 65,536 bytes', action: 'Check its line ends and quotes.' },
  text: {
    text: 'Name with a control character, blank, or longer than 255 bytes',
    action: 'Correct the name.',
  },
  utf8: { text: 'Not UTF-8', action: 'Export the file as UTF-8.' },
  nul: { text: 'Contains NUL bytes', action: 'Export the file as CSV.' },
  feature: {
    text: 'Rate feature is not in the codec list',
    action: 'Correct the name, or change the codec list first. Otherwise the import stops.',
  },
  features: { text: 'More than 24 rate features', action: 'Remove the excess.' },
  date: { text: 'Invalid date', action: 'Write dates as 2026-11-24.' },
  availability: { text: 'Availability is not a whole number 0–255', action: 'Limit larger numbers to 255.' },
  price: {
    text: 'Price is not a whole number 0–4294967294',
    action: 'Use numbers of the smallest currency unit.',
  },
  'price-decimals': {
    text: 'Price with more decimals than chosen above',
    action: 'Choose the decimals of the prices: with 2, 12.00 is 1200. Unsaid, it could also mean 12.',
  },
  latitude: {
    text: 'Latitude is not between −90 and 90',
    action: 'Check whether latitude and longitude are swapped.',
  },
  longitude: { text: 'Longitude is not between −180 and 180', action: 'Use a decimal point.' },
  digits: {
    text: 'Position without six decimal places',
    action: 'No action needed. Six decimal places are 10 cm.',
  },
  empty: {
    text: 'Empty name',
    action: 'A property needs an id, segment, area, type and category; a package needs a room type.',
  },
  id: {
    text: 'Property id is neither a UUID nor 1–14 printable ASCII characters',
    action: 'Use a UUID, or 1–14 printable ASCII characters.',
  },
  stars: { text: 'Stars are not a whole number 1–5', action: 'Round them.' },
  twice: { text: 'Duplicate property', action: 'Keep one of the lines.' },
  'package-twice': { text: 'Duplicate property, room type and date', action: 'Keep one of the lines.' },
  unknown: {
    text: 'Package of a property that is not in properties.csv',
    action: 'Add the property, or remove the package.',
  },
  rooms: { text: 'Property with more than 10 room types', action: 'Check for spelling variants of one room type.' },
  free: { text: 'Price 0', action: 'Check whether the price is missing.' },
  past: { text: 'Date in the past or beyond the usual window', action: 'Such packages are skipped and counted.' },
}
