// Preloaded in programs of tests (`--import`): host names of the JSON file in VACANCY_TEST_NAMES, read at each lookup, as
// the DNS of a cluster would have them at that moment. Other names are looked up as usual.
import dns from 'node:dns'
import { readFileSync } from 'node:fs'

const { lookup } = dns

dns.lookup = (name, options, done) => {
  const address = JSON.parse(readFileSync(process.env.VACANCY_TEST_NAMES, 'utf8'))[name]
  if (address === undefined) return lookup(name, options, done)
  const callback = done ?? options
  process.nextTick(() => (options.all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)))
}
