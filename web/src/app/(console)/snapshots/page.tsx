export { SnapshotsPage as default } from '../../../features/snapshots/snapshots-page.tsx'
