/** Titles of pages that only the palette and their section link. */

export const pages = {
  newImport: 'New import',
  queueConsumers: 'Queue: consumers',
  services: 'Registry: services',
  datasets: 'Registry: datasets',
  codecs: 'Registry: codec list',
  resolver: 'Registry: resolver',
  profile: 'Settings: profile',
  appearance: 'Settings: appearance',
  tokens: 'Settings: API tokens',
  people: 'Settings: people',
  environment: 'Settings: environment',
  about: 'Settings: about',
}
