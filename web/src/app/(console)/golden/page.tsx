export { GoldenPage as default } from '../../../features/golden/golden-page.tsx'
