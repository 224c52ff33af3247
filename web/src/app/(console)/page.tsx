export { OverviewPage as default } from '../../features/overview/overview-page.tsx'
