/** Texts of the map. */
import { counted } from '../lib/format.ts'

export const map = {
  noPositions: 'No positions are known for these properties.',
  showMap: 'Show map',
  showList: 'List what is in view (L)',
  withoutPosition: (properties: number) => `${properties} without a position`,
  list: 'Properties in view',
  property: 'Property',
  area: 'Area',
  latitude: 'Latitude',
  longitude: 'Longitude',
  label: (properties: number) =>
    `Map of ${counted(properties, 'property', 'properties')}. Arrow keys select the next one in a direction, Enter opens it, plus and minus zoom, Shift with arrows moves the map, 0 shows all, L lists what is in view.`,
  zoomIn: 'Zoom in (+)',
  zoomOut: 'Zoom out (−)',
  all: 'Show all (0)',
  searchHere: 'Search here',
  inView: (inView: number, all: number) => `${inView} of ${all} in view`,
  binned: (inView: number) => `${counted(inView, 'property', 'properties')} in view, binned. Zoom in for points.`,
  wheel: 'Ctrl with the wheel zooms',
}
