// The description of the routes, of the server whose address is the first argument, by a validator of OpenAPI.
import assert from "node:assert";
import { Validator } from "@seriousme/openapi-schema-validator";

const [url] = process.argv.slice(2);
const document = await (await fetch(`${url}/openapi.json`)).json();
const validator = new Validator();
const { valid, errors } = await validator.validate(document);
assert(valid, JSON.stringify(errors, null, 2));
assert.equal(validator.version, "3.1");
console.log(`ok: ${Object.keys(document.paths).length} paths`);
