export { FailuresPage as default } from '../../../features/failures/failures-page.tsx'
