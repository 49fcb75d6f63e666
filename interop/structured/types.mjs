// The Zod types that a JSON schema can express. Each is a property of an object, which clients' APIs ask for.
import { z } from 'zod';

const tree = z.object({ name: z.string().max(3), get kids() { return z.array(tree).max(1); } });

// What these types accept is less than their schemas say.
export const wider = ['httpUrl', 'jwt'];

export const types = {
	string: z.string(), number: z.number(), boolean: z.boolean(), null: z.null(), int: z.int(), int32: z.int32(),
	uint32: z.uint32(), float32: z.float32(), float64: z.float64(),
	min: z.string().min(2), max: z.string().max(3), length: z.string().length(2), nonempty: z.string().nonempty(),
	regex: z.string().regex(/^[a-c]+$/), regexLength: z.string().regex(/^[a-c]+$/).min(2).max(4),
	startsWith: z.string().startsWith('a'), endsWith: z.string().endsWith('z'), includes: z.string().includes('bc'),
	lowercase: z.string().lowercase(), uppercase: z.string().uppercase(),
	email: z.email(), uuid: z.uuid(), guid: z.guid(), url: z.url(), httpUrl: z.httpUrl(), hostname: z.hostname(),
	ipv4: z.ipv4(), ipv6: z.ipv6(), cidrv4: z.cidrv4(), cidrv6: z.cidrv6(), base64: z.base64(), base64url: z.base64url(),
	hex: z.hex(), jwt: z.jwt(), nanoid: z.nanoid(), cuid: z.cuid(), cuid2: z.cuid2(), ulid: z.ulid(), xid: z.xid(),
	ksuid: z.ksuid(), emoji: z.emoji(), e164: z.e164(), mac: z.mac(),
	isoDate: z.iso.date(), isoTime: z.iso.time(), isoDateTime: z.iso.datetime(), isoDuration: z.iso.duration(),
	gt: z.number().gt(1), gte: z.number().gte(1), lt: z.number().lt(9), lte: z.number().lte(9),
	positive: z.int().positive(), negative: z.int().negative(), multipleOf: z.int().multipleOf(7),
	literal: z.literal('x'), literals: z.literal([1, 'two', true, null]), enum: z.enum(['a', 'b']),
	nativeEnum: z.enum({ A: 1, B: 2 }), optional: z.string().optional(), nullable: z.int().nullable(),
	nullish: z.string().nullish(), default: z.string().default('d'), prefault: z.string().prefault('d'),
	catch: z.string().catch('c'), readonly: z.array(z.int()).max(2).readonly(), branded: z.string().brand('b'),
	array: z.array(z.int()).min(1).max(2), tuple: z.tuple([z.literal('a'), z.int()]),
	tupleRest: z.tuple([z.literal('a')], z.boolean()), record: z.record(z.string(), z.int()),
	recordEnum: z.record(z.enum(['a', 'b']), z.int()), partialRecord: z.partialRecord(z.enum(['a', 'b']), z.int()),
	object: z.object({ a: z.int() }), strictObject: z.strictObject({ a: z.int() }),
	looseObject: z.looseObject({ a: z.int() }), catchall: z.object({ a: z.int() }).catchall(z.boolean()),
	partial: z.object({ a: z.int(), b: z.boolean() }).partial(), extend: z.object({ a: z.int() }).extend({ b: z.null() }),
	union: z.union([z.int(), z.boolean()]),
	intersection: z.intersection(z.object({ a: z.int() }), z.object({ b: z.null() })),
	discriminated: z.discriminatedUnion('k', [z.object({ k: z.literal('i'), v: z.int() }),
		z.object({ k: z.literal('b'), v: z.boolean() })]),
	lazy: z.lazy(() => z.int()), recursive: tree, templateLiteral: z.templateLiteral(['v', z.int()]),
	stringbool: z.pipe(z.string(), z.transform((s) => s)), described: z.string().describe('words').meta({ title: 't' }),
	any: z.any(), unknown: z.unknown(), json: z.json(), check: z.string().check(z.maxLength(4)),
};
