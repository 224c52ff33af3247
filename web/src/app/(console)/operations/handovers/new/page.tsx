export { NewHandoverPage as default } from '../../../../../features/handovers/new-handover-page.tsx'
