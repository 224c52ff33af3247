import { expect, test } from 'vitest'
import { z } from 'zod'
import type { ControlRoute } from './control.ts'
import { controlOperations, openApiOf } from './openapi.ts'

const INFO = { title: 'Test', version: '1' }

test('an operation has its parameters, body, response and errors; a named schema stands once', () => {
  const room = z.object({ id: z.string().max(9), count: z.int() })
  const routes: { readonly [name: string]: ControlRoute } = {
    'GET /rooms/{id}': {
      access: 'viewer',
      summary: 'A room.',
      params: z.object({ id: z.string().max(9) }),
      query: z.object({ day: z.iso.date(), limit: z.coerce.number().int().max(5).default(1) }),
      response: room,
    },
    'PUT /rooms/{id}': { access: 'open', summary: 'Sets it.', body: room, status: 204, response: z.undefined() },
    'POST /rooms': {
      access: 'admin',
      summary: 'Sets all.',
      body: z.array(room),
      bodyBytesMax: 1_000_000,
      status: 204,
      response: z.undefined(),
    },
    'GET /rooms': { access: 'admin', summary: 'All.', response: z.object({ rooms: z.array(room) }) },
    'POST /file': {
      access: 'admin',
      summary: 'Takes and gives bytes.',
      takes: 'bytes',
      gives: 'bytes',
      status: 201,
      response: z.string(),
    },
  }

  const { info, paths, components } = openApiOf(INFO, controlOperations(routes), { room, other: 1 }, false)

  const roomRef = { $ref: '#/components/schemas/room' }
  const failed = { default: { description: 'Refused or failed.', content: { 'text/plain': {} } } }
  const id = { name: 'id', in: 'path', required: true }
  const roomSchema = {
    type: 'object',
    properties: { id: { type: 'string', maxLength: 9 }, count: { type: 'integer' } },
    required: ['id', 'count'],
  }
  expect(info).toEqual(INFO)
  expect(components).toEqual({
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: { room: { ...roomSchema, additionalProperties: false } },
  })
  expect(paths).toEqual({
    '/rooms/{id}': {
      get: {
        summary: 'A room.',
        tags: ['rooms'],
        description: 'Access: viewer.',
        security: [{ token: [] }],
        parameters: [
          { ...id, schema: { type: 'string', maxLength: 9 } },
          { name: 'day', in: 'query', required: true, schema: { type: 'string', format: 'date' } },
          { name: 'limit', in: 'query', required: false, schema: { type: 'integer', default: 1, maximum: 5 } },
        ],
        responses: {
          200: { description: 'Success.', content: { 'application/json': { schema: roomRef } } },
          ...failed,
        },
      },
      put: {
        summary: 'Sets it.',
        tags: ['rooms'],
        description: 'Access: open.',
        security: [],
        parameters: [{ ...id, schema: { type: 'string' } }],
        requestBody: {
          description: 'At most 65536 bytes.',
          required: true,
          content: { 'application/json': { schema: roomSchema } },
        },
        responses: { 204: { description: 'Success, without a body.' }, ...failed },
      },
    },
    '/rooms': {
      post: {
        summary: 'Sets all.',
        tags: ['rooms'],
        description: 'Access: admin.',
        security: [{ token: [] }],
        parameters: [],
        requestBody: {
          description: 'At most 1000000 bytes.',
          required: true,
          content: { 'application/json': { schema: { type: 'array', items: roomSchema } } },
        },
        responses: { 204: { description: 'Success, without a body.' }, ...failed },
      },
      get: {
        summary: 'All.',
        tags: ['rooms'],
        description: 'Access: admin.',
        security: [{ token: [] }],
        parameters: [],
        responses: {
          200: {
            description: 'Success.',
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: { rooms: { type: 'array', items: roomRef } },
                  required: ['rooms'],
                  additionalProperties: false,
                },
              },
            },
          },
          ...failed,
        },
      },
    },
    '/file': {
      post: {
        summary: 'Takes and gives bytes.',
        tags: ['file'],
        description: 'Access: admin.',
        security: [{ token: [] }],
        parameters: [],
        requestBody: { required: true, content: { 'application/octet-stream': {} } },
        responses: { 201: { description: 'Success.', content: { 'application/octet-stream': {} } }, ...failed },
      },
    },
  })
})
