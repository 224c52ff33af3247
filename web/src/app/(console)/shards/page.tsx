export { ShardsPage as default } from '../../../features/shards/shards-page.tsx'
