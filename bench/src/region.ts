/**
 * Shape `region`: the Alps as a traveller would find them. Valleys are segments, towns are areas with their real
 * places on the map; ski towns are dear in February, lakes in August; Fridays and Saturdays cost more, and now
 * and then a weekend is sold out. It is what `npm start` shows.
 */
import { assert, weekdayOf } from '@vacancy/shared'
import {
  addProperty,
  addRow,
  type Draft,
  type Names,
  PRICE_END,
  packPackage,
  SAMPLE_RATE_FEATURES,
  type Shape,
} from './inventory.ts'
import {
  below,
  between,
  cumulative,
  hash2,
  nextU32,
  pickMask,
  pickWeighted,
  type Random,
  upperBound,
} from './random.ts'

type Season = 'ski' | 'lake' | 'city'

/** Town: name, latitude, longitude, season, share of the valley's properties, price level in per cent. */
type Town = readonly [string, number, number, Season, number, number]

const VALLEYS: readonly { segment: string; towns: readonly Town[] }[] = [
  {
    segment: 'tyrol',
    towns: [
      ['innsbruck', 47.2692, 11.4041, 'city', 30, 100],
      ['kitzbuehel', 47.4464, 12.392, 'ski', 18, 160],
      ['mayrhofen', 47.1667, 11.8667, 'ski', 16, 95],
      ['soelden', 46.9655, 11.0077, 'ski', 14, 115],
      ['seefeld', 47.3297, 11.1879, 'ski', 12, 110],
      ['st_anton', 47.1287, 10.2682, 'ski', 10, 140],
    ],
  },
  {
    segment: 'savoy',
    towns: [
      ['chamonix', 45.9237, 6.8694, 'ski', 34, 125],
      ['annecy', 45.8992, 6.1294, 'lake', 28, 110],
      ['courchevel', 45.4154, 6.6347, 'ski', 14, 190],
      ['megeve', 45.8567, 6.6174, 'ski', 12, 150],
      ['val_d_isere', 45.448, 6.977, 'ski', 12, 155],
    ],
  },
  {
    segment: 'valais',
    towns: [
      ['zermatt', 46.0207, 7.7491, 'ski', 36, 170],
      ['verbier', 46.0961, 7.2286, 'ski', 20, 165],
      ['sion', 46.2331, 7.3606, 'city', 18, 95],
      ['saas_fee', 46.1081, 7.9274, 'ski', 14, 120],
      ['leukerbad', 46.3794, 7.6264, 'ski', 12, 105],
    ],
  },
  {
    segment: 'dolomites',
    towns: [
      ['bolzano', 46.4983, 11.3548, 'city', 30, 95],
      ['cortina', 46.5405, 12.1357, 'ski', 24, 150],
      ['ortisei', 46.5744, 11.6722, 'ski', 20, 120],
      ['canazei', 46.4767, 11.7706, 'ski', 14, 100],
      ['madonna_di_campiglio', 46.23, 10.8266, 'ski', 12, 125],
    ],
  },
  {
    segment: 'salzburg',
    towns: [
      ['salzburg', 47.8095, 13.055, 'city', 44, 115],
      ['zell_am_see', 47.3256, 12.7944, 'lake', 26, 105],
      ['saalbach', 47.3911, 12.6372, 'ski', 18, 110],
      ['bad_gastein', 47.114, 13.1344, 'ski', 12, 95],
    ],
  },
  {
    segment: 'engadin',
    towns: [
      ['davos', 46.8027, 9.836, 'ski', 40, 140],
      ['st_moritz', 46.4908, 9.8355, 'ski', 32, 195],
      ['pontresina', 46.4953, 9.9015, 'ski', 16, 135],
      ['scuol', 46.7965, 10.2983, 'ski', 12, 105],
    ],
  },
  {
    segment: 'allgaeu',
    towns: [
      ['oberstdorf', 47.4099, 10.2797, 'ski', 36, 90],
      ['fuessen', 47.5696, 10.7004, 'lake', 34, 90],
      ['lindau', 47.546, 9.6843, 'lake', 30, 105],
    ],
  },
  {
    segment: 'carinthia',
    towns: [
      ['velden', 46.6125, 14.0419, 'lake', 36, 115],
      ['klagenfurt', 46.6247, 14.3053, 'city', 36, 85],
      ['bad_kleinkirchheim', 46.8129, 13.7966, 'ski', 28, 95],
    ],
  },
]
/** As many valleys as there are names for. */
export const REGION_SEGMENTS_MAX = VALLEYS.length
const REGION_SEGMENTS = 4

/** Per cent of the base price, January to December. */
const MONTH_PERCENT: Record<Season, readonly number[]> = {
  ski: [138, 155, 128, 92, 64, 78, 98, 104, 84, 70, 60, 142],
  lake: [66, 70, 78, 92, 108, 132, 152, 158, 118, 88, 64, 84],
  city: [80, 86, 92, 100, 108, 114, 118, 120, 110, 100, 92, 136],
}
/** Per cent, Sunday to Saturday. */
const WEEKDAY_PERCENT = [102, 94, 92, 94, 98, 118, 125] as const
/** Rooms taken on a usual night, per cent, Sunday to Saturday. */
const WEEKDAY_DEMAND = [48, 38, 34, 36, 44, 66, 72] as const

const TYPES = ['hotel', 'apartment', 'hostel', 'resort'] as const
const TYPE_WEIGHTS = cumulative([46, 38, 8, 8])
const CATEGORIES = ['budget', 'standard', 'premium', 'luxury'] as const
const CATEGORY_WEIGHTS = cumulative([24, 44, 22, 10])
const CATEGORY_PERCENT = [74, 100, 148, 235] as const
const STARS_WEIGHTS = cumulative([20, 42, 28, 10])
const AMENITIES = [
  ...['wifi', 'parking', 'breakfast', 'restaurant', 'bar', 'spa', 'pool', 'gym'],
  ...['sauna', 'ski_storage', 'lake_view', 'pets', 'kitchen', 'balcony', 'ev_charging'],
]
const LAKE_VIEW = 1 << AMENITIES.indexOf('lake_view')
const SKI_STORAGE = 1 << AMENITIES.indexOf('ski_storage')
const ROOM_TYPES = [
  ...['double', 'single', 'twin', 'family', 'suite', 'studio', 'one_bedroom', 'two_bedroom'],
  ...['dorm_bed', 'private_room', 'chalet'],
]
const ROOM_PERCENT = [100, 72, 98, 145, 220, 86, 108, 150, 30, 74, 260]

/** A room type a kind of house may have: place in ROOM_TYPES, chance in per cent, most rooms. */
type RoomRule = readonly [number, number, number]
const ROOMS_OF_TYPE: readonly (readonly RoomRule[])[] = [
  // A hotel has doubles, mostly singles and twins, some family rooms and suites.
  [
    [0, 100, 24],
    [1, 70, 10],
    [2, 55, 12],
    [3, 40, 6],
    [4, 30, 4],
  ],
  [
    [5, 40, 3],
    [6, 100, 4],
    [7, 45, 3],
  ],
  [
    [8, 100, 40],
    [9, 80, 8],
  ],
  [
    [0, 100, 60],
    [3, 75, 20],
    [4, 80, 12],
    [10, 40, 6],
  ],
]

/** Of all weekends of a town, one in so many is sold out (a race, a festival). */
const SOLD_OUT_WEEKENDS_ONE_IN = 6
/** One house in so many asks one price all year and never sells its last room: the guides find something on any day. */
const STEADY_ONE_IN = 8

const towns = VALLEYS.flatMap(({ towns }) => towns)
const firstTown = VALLEYS.map((_, valley) =>
  VALLEYS.slice(0, valley).reduce((count, { towns }) => count + towns.length, 0),
)
const townWeights = VALLEYS.map(({ towns }) => cumulative(towns.map(([, , , , share]) => share)))
const monthPercentOfTown = towns.map(([, , , season]) => MONTH_PERCENT[season])

export const region: Shape = {
  names: (segments): Names => ({
    segments: VALLEYS.slice(0, segments).map(({ segment }) => segment),
    areas: VALLEYS.slice(0, segments).flatMap(({ towns }) => towns.map(([name]) => name)),
    types: TYPES,
    categories: CATEGORIES,
    amenities: AMENITIES,
    roomTypes: ROOM_TYPES,
    rateFeatures: SAMPLE_RATE_FEATURES,
  }),

  packagesPerProperty: (days) => 2.5 * days,

  segmentsFor: () => REGION_SEGMENTS,

  addProperty(draft, random) {
    const segment = below(random, draft.names.segments.length)
    const area = (firstTown[segment] ?? 0) + pickWeighted(random, townWeights[segment] ?? cumulative([1]))
    const town = towns[area]
    assert(town !== undefined, 'every valley has a town')
    const [, latitude, longitude, season, , level] = town
    const type = pickWeighted(random, TYPE_WEIGHTS)
    const category = type === 2 ? 0 : pickWeighted(random, CATEGORY_WEIGHTS)
    const stars = type === 2 ? 2 : Math.min(5, 2 + pickWeighted(random, STARS_WEIGHTS) + (type === 3 ? 1 : 0))
    addProperty(draft, {
      id: `alp_${String(draft.ids.length + 1).padStart(6, '0')}`,
      segment,
      area,
      type,
      category,
      stars,
      latitudeMicro: Math.round(latitude * 1e6) + between(random, -18_000, 18_000),
      longitudeMicro: Math.round(longitude * 1e6) + between(random, -25_000, 25_000),
      amenities: amenitiesFor({ season, type, category }, random),
    })
    const typePrice = [52 + stars * 18, 84, 92, 130 + stars * 24][type] ?? 100
    const housePrice = (typePrice * (CATEGORY_PERCENT[category] ?? 100) * level) / 10_000
    addRooms(draft, random, { type, category, housePrice })
  },

  varying({ properties, rows }, row, day) {
    const property = rows.property[row] ?? 0
    const area = properties.area[property] ?? 0
    const weekday = weekdayOf(day)
    const week = Math.floor((day + 3) / 7)
    const chance = hash2(rows.seed[row] ?? 0, day)
    const monthPercent = monthPercentOfTown[area]?.[monthOf(day)] ?? 100
    const isEvent = hash2(area + 0x51ed, week) % SOLD_OUT_WEEKENDS_ONE_IN === 0 && (weekday === 5 || weekday === 6)
    const percent = (monthPercent * (WEEKDAY_PERCENT[weekday] ?? 100) * (isEvent ? 130 : 100)) / 10_000
    const isSteady = property % STEADY_ONE_IN === 0
    const price = Math.floor(((rows.basePrice[row] ?? 0) * (isSteady ? 100 : percent + (chance % 9) - 4)) / 100)
    const capacity = rows.capacity[row] ?? 0
    // A dear month is a full one; each house differs from night to night by up to a third.
    const demand = (WEEKDAY_DEMAND[weekday] ?? 50) + (monthPercent - 100) / 4 + ((chance >>> 8) % 67) - 33
    const isFull = isEvent && (chance >>> 16) % 8 !== 0
    const left = isFull ? 0 : Math.ceil((capacity * (100 - demand)) / 100)
    const features = rows.features[row] ?? 0
    return packPackage(
      Math.min(PRICE_END - 1, Math.max(9, price)),
      Math.min(capacity, Math.max(isSteady ? 1 : 0, left)),
      // Peak weekends are sold without a refund.
      isEvent ? (features & ~0b0000_0001) | 0b0000_0010 : features,
    )
  },

  constant({ rows }, row) {
    return packPackage(rows.basePrice[row] ?? 0, rows.capacity[row] ?? 0, rows.features[row] ?? 0)
  },
}

function amenitiesFor(
  { season, type, category }: { season: Season; type: number; category: number },
  random: Random,
): number {
  const usual = 0b1 | pickMask(random, AMENITIES.length, between(random, 2, 4 + 2 * category))
  const withoutPlace = usual & ~(LAKE_VIEW | SKI_STORAGE)
  const ofPlace = season === 'lake' ? LAKE_VIEW : season === 'ski' ? SKI_STORAGE : 0
  const kitchen = type === 1 ? 1 << AMENITIES.indexOf('kitchen') : 0
  return withoutPlace | kitchen | (below(random, 3) === 0 ? 0 : ofPlace)
}

function addRooms(
  draft: Draft,
  random: Random,
  { type, category, housePrice }: { type: number; category: number; housePrice: number },
): void {
  for (const [roomType, chance, most] of ROOMS_OF_TYPE[type] ?? []) {
    if (below(random, 100) >= chance) continue
    // Every house confirms at once or not, refunds or not; breakfast comes with the better ones.
    const refund = below(random, 5) < 3 ? 0b0000_0001 : 0b0000_0010
    const breakfast = category >= 2 || below(random, 3) === 0 ? 0b0000_1000 : 0
    addRow(draft, {
      roomType,
      basePrice: Math.max(12, Math.floor((housePrice * (ROOM_PERCENT[roomType] ?? 100)) / 100)),
      capacity: between(random, 1, most),
      features: refund | breakfast | (nextU32(random) & 0b1001_0100),
      seed: nextU32(random),
      nights: draft.days,
    })
  }
}

/** First days of the months around the days a data set can have, so that no date object is made for each package. */
const MONTHS_KNOWN = 12 * 200
const monthStarts = Uint32Array.from({ length: MONTHS_KNOWN }, (_, month) => Date.UTC(1970, month + 1, 1) / 86_400_000)

/** 0 = January … 11 = December. */
function monthOf(day: number): number {
  return upperBound(monthStarts, day) % 12
}
