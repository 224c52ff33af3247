import { expect, test } from 'vitest'
import { importFileOf, readImportHeader } from './import-columns.ts'

const packages = (line: string) => readImportHeader('packages', line.split(','))
const properties = (line: string) => readImportHeader('properties', line.split(','))
const reasonOf = (header: ReturnType<typeof packages>) => (header.kind === 'refused' ? header.reason : header.kind)

test.each([
  'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature',
  'property_id,room-type,DATE,availability,Final Price,Rate_Cancel',
])('%s is accepted', (line) => {
  expect(packages(line)).toEqual({ kind: 'header' })
})

test('a header with price and rooms swapped used to be ignored; now the names decide', () => {
  expect(packages('PropertyID,RoomType,Date,FinalPrice,Availability,RateFeature')).toEqual({
    kind: 'header',
    order: [0, 1, 2, 4, 3, 5],
  })
  expect(packages('RateCancel,FinalPrice,Availability,Date,RoomType,PropertyID')).toEqual({
    kind: 'header',
    order: [5, 4, 3, 2, 1, 0],
  })
})

test('an unknown name among known ones in their positions is read by position, with a warning', () => {
  expect(packages('hotel,RoomType,Date,Rooms,FinalPrice,RateFeature')).toEqual({
    kind: 'header',
    warning: 'has unknown column names and is read by position: "hotel" as PropertyID, "Rooms" as Availability',
  })
  expect(packages('PropertyID,a,b,c,d,e')).toMatchObject({ kind: 'header', warning: expect.stringContaining('"a" as') })
})

test.each([
  [
    'an unknown name beside known ones that moved',
    'PropertyID,RoomType,Date,FinalPrice,Rooms,RateFeature',
    'is a header that has the unknown name "Rooms" and does not name Availability; ',
  ],
  [
    'a column that is there twice',
    'PropertyID,RoomType,Date,FinalPrice,FinalPrice,RateFeature',
    'is a header that names FinalPrice twice and does not name Availability; ',
  ],
  [
    'a column too many',
    'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature,Comment',
    'is a header of 7 columns instead of 6 that has the unknown name "Comment"; ',
  ],
  ['a column too few', 'PropertyID,Date', 'is a header of 2 columns instead of 6 that does not name RoomType, '],
  [
    'lines that end with a carriage return alone',
    'PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature\rp1,double,2026-01-01,1,1,',
    'is a header of 11 columns instead of 6 and contains a lone carriage return; ',
  ],
])('%s is refused by name', (_, line, reason) => {
  expect(reasonOf(packages(line)).slice(0, reason.length)).toBe(reason)
})

test('the header of the other file is refused', () => {
  const reason = reasonOf(packages('PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities'))

  expect(reason).toContain('of 9 columns instead of 6')
  expect(reason).toContain('"Segment", "Area", "PropertyType", "Category" and 4 more')
})

test.each([
  ['packages', 'PropertyID,b,c,d,e,f', 'header'],
  ['packages', 'a,PropertyID,c,d,e,f', 'refused'],
  ['packages', 'RoomType,PropertyID,c,d,e,f', 'refused'],
  // A row of packages has three cells for text, a row of properties six.
  ['packages', 'a,RoomType,Date,FinalPrice,e,f', 'refused'],
  ['packages', 'a,RoomType,Date,FinalPrice,Availability,f', 'refused'],
  ['properties', 'a,Segment,Area,PropertyType,Category,Stars,Latitude,7,8', 'none'],
  ['properties', 'a,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,8', 'header'],
] as const)('%s: %s is %s', (file, line, kind) => {
  expect(readImportHeader(file, line.split(',')).kind).toBe(kind)
})

test('cells beyond the kept ones count', () => {
  const header = readImportHeader('packages', ['PropertyID', 'RoomType'], 50)

  expect(reasonOf(header)).toContain('of 50 columns instead of 6')
})

test.each([
  ['packages', 'p1,double,2026-11-24,3,120,breakfast'],
  ['packages', 'RoomType,Date,2026-11-24,3,120,FinalPrice'],
  ['packages', ''],
] as const)('%s: %s is data', (file, line) => {
  expect(readImportHeader(file, line.split(',')).kind).toBe('none')
})

test('a row of properties whose texts are names of columns is data', () => {
  expect(properties('Segment,Area,Category,PropertyType,Stars,5,1,2,Latitude').kind).toBe('none')
})

test.each([
  ['properties', 'p1,a,b,c,d,5,1.1,2.2,x'],
  ['packages', 'p1,double,2026-11-24,3,120,'],
  ['properties', 'PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude'],
  ['packages', 'Date,PropertyID,RoomType,Availability,FinalPrice,RateFeature,x,y,z'],
  [undefined, 'p1,a,b,c,d,5,1.1,2.2'],
  [undefined, 'p1,a,b,c,d'],
  // A name of a column in a row of data, which its number of cells decides.
  ['packages', 'p1,Segment,c,d,e,f'],
  ['properties', 'p1,RoomType,a,b,c,5,1.1,2.2,x'],
  // A header that names as many columns of one file as of the other.
  ['packages', 'PropertyID,a,b,c,d,e'],
  ['properties', 'PropertyID,a,b,c,d,e,f,g,h'],
] as const)('%s.csv begins with %s', (file, line) => {
  expect(importFileOf(line.split(','))).toBe(file)
})

test.each([
  ['packages', 'p;r;2026-11-20;3;120;', 'separates its cells by semicolons; save the file with commas'],
  ['packages', 'p\tr\t2026-11-20\t3\t120\t', 'use vacancy import-source with "delimiter": "\\t"'],
  ['packages', 'PropertyID;RoomType;Date;Availability;FinalPrice;RateFeature', 'separates its cells by semicolons'],
  ['properties', 'p;S;A;t;c;3;47,5;11,2;', 'separates its cells by semicolons; save the file with commas'],
  [
    'packages',
    'hotel,room,day,free,rate,plan',
    'looks like the header of another system: "hotel", "room", "day", "free" and 2 more; the columns are PropertyID,',
  ],
] as const)('of %s, %j is one finding for the file', (file, row, reason) => {
  expect(readImportHeader(file, row.split(','))).toEqual({ kind: 'refused', reason: expect.stringContaining(reason) })
})

test('a row of data with a separator inside a cell, or one fault, is no header', () => {
  expect(readImportHeader('packages', ['p', 'a;b;c', '2026-11-20', '3', '120', 'a|b|c|d'])).toEqual({ kind: 'none' })
  expect(readImportHeader('packages', ['p', 'r', 'tomorrow', '3', '120', ''])).toEqual({ kind: 'none' })
})
