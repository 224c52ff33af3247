/** The pages on running nodes, shards and the control plane as an operator follows them, on any date. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@vacancy/testkit/free-port'
import { queryDatabase, startPostgres } from '@vacancy/testkit/postgres'
import { startProgram } from '@vacancy/testkit/program'
import { expect, test } from 'vitest'
import { allCommandsOf, ROOT, read } from './testing/blocks.ts'
import { folder, follow, startOn } from './testing/guide.ts'

const TEST_MS = 600_000
const DAYS = ['2026-12-31', '2027-01-01', '2027-05-15', '2028-02-29']
const TODAY = new Date().toISOString().slice(0, 10)

// Not here: two that install (scripts/dist.long.test.mjs), one for systemd, whose units scripts/units.long.test.mjs verifies, and
// three for containers (scripts/containers.long.test.mjs).
const [
  ,
  ,
  START = '',
  ,
  ,
  ,
  ,
  IMPORT = '',
  LARGE = '',
  SOURCE = '',
  BACKUP = '',
  EXPORT = '',
  RESTORE = '',
  SAVE = '',
  TLS = '',
] = allCommandsOf('docs/operators.md')
const CLUSTERS = allCommandsOf('docs/clusters.md')
const CONTROL = allCommandsOf('docs/control-plane.md')
const TOKENS = /^```yaml\n(tokens:\n.*?)^```/ms.exec(read('docs/operators.md'))?.[1] ?? ''

/**
 * What the pages leave running runs in the background: `serve` waits until it answers, `stop` ends it, with exit code 0.
 *
 * @param url of the served program
 */
const serving = (url: string, path = '/ready') => `
vacancy() { npx vacancy "$@"; }
serve() {
  "$NODE" "$ROOT/bin/vacancy.mjs" "$@" > serve.log 2>&1 &
  SERVING=$!
  until curl -k -f ${url}${path} > answer.json 2> /dev/null; do kill -0 $SERVING || { cat serve.log; exit 1; }; sleep 0.3; done
}
stop() { kill -TERM $SERVING; wait $SERVING; }
`
const served = (block: string) =>
  block.replaceAll(/^(.*?)(?:npx )?vacancy (run|control-plane)( --.*)$/gm, '$1serve $2$3')

/** The CSV files that the start of a node leaves. */
async function sampleOn(day: string, name: string): Promise<string> {
  const dir = join(folder, name)
  mkdirSync(dir, { recursive: true })
  const node = startOn(day, [
    ...[join(ROOT, 'quickstart/src/start.ts'), '--dir', join(dir, 'quickstart-data'), '--packages', '20000'],
    ...['--tcp-port', '0', '--api-port', '0'],
  ])
  await node.printed(/Ctrl-C/)
  node.signal('SIGINT')
  await node.ended
  writeFileSync(join(dir, 'tokens.yml'), TOKENS)
  writeFileSync(join(dir, 'admin.token'), 'change-me\n')
  writeFileSync(join(dir, 'vacancy.yml'), 'data_dir: data\n')
  return dir
}

test.each(DAYS)(
  'the commands of the page on running a node work on %s',
  async (day) => {
    const dir = await sampleOn(day, `node-${day}`)
    const [tcp, api] = [await freePort(), await freePort()]
    const own = (text: string) => served(text.replaceAll('127.0.0.1:8080', `127.0.0.1:${api}`))
    const url = `127.0.0.1:${api}`
    await follow(
      day,
      `cd ${dir}
${serving(url)}
cp -r quickstart-data/csv csv; cp quickstart-data/codecs.yml .
export VACANCY_RUN_AUTH_FILE=tokens.yml
${own(START)}${own(SAVE)}${own(BACKUP)}
stop; rm -r backup
${own(EXPORT)}${own(RESTORE)}
stop; unset VACANCY_RUN_AUTH_FILE
mkdir import large; ln -s ../quickstart-data import; ln -s ../csv large
cd import
${own(IMPORT)}
stop; cd ../large
${own(LARGE)}test -f data/s1/seed.snapshot`,
      { VACANCY_RUN_TCP_PORT: String(tcp), VACANCY_RUN_API_PORT: String(api) },
    )
  },
  TEST_MS,
)

test(
  'the import from a database works as the page says, with its mapping',
  async () => {
    const postgres = await startPostgres()
    try {
      const dir = join(folder, 'source')
      mkdirSync(dir)
      const address = await postgres.createDatabase()
      await queryDatabase(
        address,
        `CREATE TABLE hotels (id text, region text, town text, category text, stars int, lat numeric, lon numeric, amenities text[]);
         INSERT INTO hotels VALUES ('h1', 'tyrol', 'Imst', NULL, 4, 47.24, 10.74, '{wifi,pool}');
         CREATE TABLE nights (hotel_id text, room text, night text, rooms int, sold int, price text, features text);
         INSERT INTO nights SELECT 'h1', 'double', to_char(current_date + i, 'DD.MM.YYYY'), 9, i, '1.120,50', 'breakfast' FROM generate_series(1, 7) i`,
      )
      const [mapping = ''] = /(?<=^```json\n)\{\n {2}"source".*?(?=^```)/ms.exec(read('docs/operators.md')) ?? []
      writeFileSync(join(dir, 'mapping.json'), mapping)
      writeFileSync(join(dir, 'codecs.yml'), 'rate_features: [breakfast]\n')
      const block = SOURCE.replace(/^export HOTELS_URL=.*$/m, `export HOTELS_URL='${address}'`)
      const output = await follow(TODAY, `cd ${dir}\nvacancy() { npx vacancy "$@"; }\n${block}`, {})
      expect(output).toMatch(/h1 +double +\d{4}-\d\d-\d\d +8 +1120\.50 +breakfast/)
      expect(output).toContain('7 packages of 1 properties')
    } finally {
      await postgres.close()
    }
  },
  TEST_MS,
)

test(
  'TLS of a node works as the page says',
  async () => {
    const dir = await sampleOn(TODAY, 'tls')
    const [tcp, api] = [await freePort(), await freePort()]
    const [run = '', query = ''] = TLS.trim().split('\n')
    const output = await follow(
      TODAY,
      `cd ${dir}
${serving(`https://127.0.0.1:${api}`)}
cp quickstart-data/codecs.yml .
vacancy build-snapshot --shard-id s1 --input-path quickstart-data/csv --output-path data
vacancy certs init --out tls
vacancy certs node --ca tls --node-id n1 --host 127.0.0.1,localhost --out tls
cat tls/n1.pem tls/ca.pem > cert.pem; cp tls/n1.key key.pem
${served(run)}
${query}
stop`,
      {
        ...{ VACANCY_RUN_TCP_PORT: String(tcp), VACANCY_RUN_API_PORT: String(api), VACANCY_QUERY_PORT: String(tcp) },
      },
    )
    expect(output).toContain('tyrol')
  },
  TEST_MS,
)

test(
  'the commands of the page on shards work',
  async () => {
    const [tryIt = '', certs = '', runNode = '', forming = '', looking = '', members = '', backup = '', load = ''] =
      CLUSTERS
    const [inspect = '', exported = '', ready = '', damaged = '', status = ''] = CLUSTERS.slice(8)
    const dir = join(folder, 'shard')
    mkdirSync(dir)
    const shard = startProgram(
      [
        join(ROOT, 'quickstart/src/shard.ts'),
        '--no-console',
        '--no-sample',
        '--block',
        '62',
        '--dir',
        join(dir, 'quickstart-shard'),
      ],
      { isBound: true },
    )
    await shard.printed(/Ctrl-C/)
    const block = 62
    const [api, tcp, quic, registry, resolver, files] = await Promise.all(Array.from({ length: 6 }, () => freePort()))
    const own = (text: string) =>
      text
        .replaceAll('127.0.1.', `127.0.${block}.`)
        .replaceAll(/n(\d)\.example:8080/g, `127.0.${block}.$1:8080`)
        .replaceAll('127.0.0.1:8080', `127.0.${block}.1:8080`)
    // The page says: to a voter that does not lead.
    const other = (text: string) => text.replace(/cluster transfer n\d/g, 'cluster transfer $(other)')
    const [file = '', fetched = ''] = load.trim().split('\n')
    const output = await follow(
      TODAY,
      `cd ${dir}
${serving(`127.0.0.1:${api}`, '/health')}
cp quickstart-shard/admin.token .
other() { vacancy cluster info --node 127.0.${block}.1:8080 | grep -q 'leader n1' && echo n2 || echo n1; }
${own(other(tryIt))}${own(looking)}${own(other(members))}${own(backup)}
${own(file).replace('/srv/import', '$PWD/backup')}
"$NODE" -e 'require("http").createServer((_, r) => require("fs").createReadStream("backup/seed.snapshot").pipe(r)).listen(${files})' &
DIGEST=$(vacancy inspect backup/seed.snapshot --json | "$NODE" -p 'JSON.parse(require("fs").readFileSync(0)).id')
${own(fetched)
  .replace('https://console.example/api/v1/pull/DIGEST', `http://127.0.0.1:${files}/`)
  .replace('"digest":"DIGEST"', `"digest":"'$DIGEST'"`)}
${own(ready)}${own(status)}
${certs}
printf '%s' '${TOKENS}' > tokens.yml
cp quickstart-shard/codecs.yml .
vacancy registry --addr 127.0.0.1 --port ${registry} --codecs-path codecs.yml > registry.log 2>&1 &
vacancy resolver --host 127.0.0.1 --port ${resolver} --map n1=127.0.0.1 > resolver.log 2>&1 &
echo 'data_dir: data' > vacancy.yml
${runNode
  .replace(/^vacancy/m, 'serve')
  .replace('http://registry:8080', `http://127.0.0.1:${registry}`)
  .replace('http://resolver:9090', `http://127.0.0.1:${resolver}`)}
until curl http://127.0.0.1:${api}/cluster/info | grep -q waits_for; do sleep 0.5; done
${forming.replace('127.0.0.1:8080', `127.0.0.1:${api}`)}
stop`,
      {
        VACANCY_RUN_CLUSTERED_API_PORT: String(api),
        VACANCY_RUN_CLUSTERED_TCP_PORT: String(tcp),
        VACANCY_RUN_CLUSTERED_QUIC_PORT: String(quic),
      },
    )
    expect(output).toContain('not formed')
    shard.signal('SIGINT')
    await shard.ended
    await follow(
      TODAY,
      `cd ${dir}
vacancy() { npx vacancy "$@"; }
rm -rf backup data; ln -s quickstart-shard/data/n2 data
${inspect}${exported}${damaged.trim().split('\n').at(-1)}`,
      {},
    )
  },
  TEST_MS,
)

test(
  'the runbook of a wrong clock works on a node whose log is two days ahead',
  async () => {
    const [status = '', setTime = ''] = CLUSTERS.slice(12)
    const ahead = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10)
    const dir = await sampleOn(ahead, 'clock')
    const ports = { VACANCY_RUN_TCP_PORT: String(await freePort()), VACANCY_RUN_API_PORT: String(await freePort()) }
    const url = `127.0.0.1:${ports.VACANCY_RUN_API_PORT}`
    const run = `cd ${dir}
${serving(url, '/health')}
export VACANCY_RUN_AUTH_FILE=tokens.yml
serve run --codecs quickstart-data/codecs.yml --data-dir data`
    const start = `vacancy build-snapshot --shard-id s1 --input-path quickstart-data/csv --output-path data
serve run`
    await follow(
      ahead,
      `${run.replace('serve run', start)}\nuntil curl -f http://${url}/ready; do sleep 0.3; done\nstop`,
      ports,
    )
    const output = await follow(
      TODAY,
      `${run}
until curl http://${url}/ready | grep '"reason":"clock"'; do sleep 0.3; done
${`${status}${setTime}`.replaceAll('127.0.0.1:8080', url)}
until curl -f http://${url}/ready; do sleep 0.3; done
stop`,
      ports,
    )
    expect(output).toMatch(/"reason":"clock".*"ready":true/s)
  },
  TEST_MS,
)

test.each([TODAY, ...DAYS])(
  'the commands of the page on the control plane work on %s',
  async (day) => {
    const [start = '', signIn = '', links = '', forget = '', summary = '', transfer = '', verify = '', audit = ''] =
      CONTROL
    const [tls = '', golden = '', createdb = '', sqlite = '', dump = ''] = CONTROL.slice(8)
    const port = await freePort()
    const dir = join(folder, `control-${day}`)
    mkdirSync(dir)
    const own = (text: string) =>
      served(text.replaceAll('127.0.0.1:8000', `127.0.0.1:${port}`)).replaceAll(
        /^serve control-plane link/gm,
        'vacancy control-plane link',
      )
    const url = `127.0.0.1:${port}`
    const output = await follow(
      day,
      `cd ${dir}
${serving(url)}
${own(start)}
grep set-up: serve.log
stop
${own(signIn)}
CODE=$(grep -o 'code=.*' serve.log | cut -c6-)
curl -f -c jar -H 'content-type: application/json' -d "{\\"code\\":\\"$CODE\\"}" http://${url}/api/v1/session/link > me.json
CSRF=$("$NODE" -p 'JSON.parse(require("fs").readFileSync("me.json")).csrf')
TOKEN=$(curl -f -b jar -H "x-csrf: $CSRF" -H 'content-type: application/json' -d '{"name":"guide","role":"admin","expiresAt":null}' http://${url}/api/v1/tokens | "$NODE" -p 'JSON.parse(require("fs").readFileSync(0)).value')
${own(links)}${own(forget)}${own(summary)}${own(transfer)}${own(verify)}${own(audit)}${own(golden)}
${own(sqlite)}
test -s control-plane.backup; test -s audit.jsonl
stop`,
      { VACANCY_CONTROL_PLANE_LISTEN_PORT: String(port), VACANCY_CONTROL_PLANE_WEB: 'false' },
    )
    expect(output).toContain('"brokenAt":null')
    expect(output.match(/sign-in#code=/g)?.length).toBeGreaterThanOrEqual(2)
    if (day !== TODAY) return
    // Certificates and PostgreSQL are checked by the clock of the machine.
    const postgres = await startPostgres()
    const address = new URL(await postgres.createDatabase())
    const [reach = '', ...more] = own(tls).trim().split('\n').reverse()
    await follow(
      day,
      `cd ${dir}
${serving(`https://${url}`)}
${more.reverse().join('\n')}
${reach}
stop
${serving(`http://${url}`)}
export PATH="${postgres.programs}:$PATH" PGPASSWORD=${address.password} PGPORT=${address.port}
${own(createdb).replace('vacancy@127.0.0.1/', `vacancy:${address.password}@127.0.0.1:${address.port}/`)}
${own(dump).trim().split('\n')[0]}
stop
${own(dump).trim().split('\n')[1]}`,
      { VACANCY_CONTROL_PLANE_LISTEN_PORT: String(port), VACANCY_CONTROL_PLANE_WEB: 'false' },
    )
    await postgres.close()
  },
  TEST_MS,
)
