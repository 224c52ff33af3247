export { TopologyPage as default } from '../../../features/topology/topology-page.tsx'
