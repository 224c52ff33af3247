export { ConsumersPage as default } from '../../../../features/queue/consumers-panel.tsx'
