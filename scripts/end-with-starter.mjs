// Loaded with --import into a program that knows nothing of starters.
import { endWithStarter } from './starter.mjs'

endWithStarter()
