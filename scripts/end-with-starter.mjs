// Loaded with --import into programs that do not watch their starter.
import { endWithStarter } from './starter.mjs'

endWithStarter()
