export { ComparePage as default } from '../../../../features/snapshots/compare-page.tsx'
