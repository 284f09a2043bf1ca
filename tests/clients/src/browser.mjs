// Pages in chromium, with the server whose address is the first argument: one with `useChat` of AI SDK, and the one that
// the server has itself. Prints what it sees, one line each, and fails at the first line that is not expected.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [url] = process.argv.slice(2);
const entryPoints = [fileURLToPath(new URL("chat.jsx", import.meta.url))];
const define = { "process.env.NODE_ENV": '"production"' };
const bundled = await build({ entryPoints, bundle: true, write: false, jsx: "automatic", define, logLevel: "error" });
const script = bundled.outputFiles[0].text.replaceAll("</script", "<\\/script");

// The page of docs/serving.md.
const documented = readFileSync(new URL("../../../docs/serving.md", import.meta.url), "utf8").split("```html\n")[1].split("```")[0];

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const goOn = () => fetch(`${url}/go-on`, { method: "POST" });

/** Opens a page of its own. What goes wrong in it fails the scenario. */
const open = async (path) => {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => assert.fail(error));
  const html = `<!doctype html><meta charset="utf-8"><body></body><script type="module">${script}</script>`;
  await page.route("**/page?*", (route) => route.fulfill({ contentType: "text/html", body: html }));
  const own = documented.replace("/agents/guide/", "/agents/assistant/");
  await page.route("**/documented", (route) => route.fulfill({ contentType: "text/html", body: own }));
  await page.goto(`${url}${path}`);
  return page;
};
const say = async (page, text) => {
  await page.locator("input[name=text]").fill(text);
  await page.locator("input[name=text]").press("Enter");
};
const write = async (page, text) => {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
};

const scenarios = {
  async "useChat: a page that is reloaded in the middle of an answer"() {
    const page = await open("/page?chat=reloaded");
    await say(page, "slow");
    await page.getByText("It rains", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("It rains", { exact: true }).waitFor();
    await goOn();
    await page.getByText("It rains in Lisbon.", { exact: true }).waitFor();
    await page.locator("output", { hasText: "ready" }).waitFor();
    assert.equal(await page.locator("article").count(), 2, "one input, one answer");
    await page.reload();
    await page.getByText("It rains in Lisbon.", { exact: true }).waitFor();
    assert.equal(await page.locator("article").count(), 2);
  },

  async "useChat: a page that is reloaded in the middle of a question"() {
    const page = await open("/page?chat=asked");
    await say(page, "refund");
    await page.locator("[data-state=approval-requested]").waitFor();
    await page.locator("output", { hasText: "ready" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("It is done.", { exact: true }).waitFor();
    assert.match(await page.locator("[data-state=output-available]").innerText(), /paid back/);
    assert.equal(await page.locator("article").count(), 2, "the same message goes on");
  },

  async "the page of the documentation, which has 40 lines"() {
    assert(documented.trim().split("\n").length <= 40);
    const page = await open("/documented");
    page.on("dialog", (dialog) => dialog.accept());
    for (const [input, answer] of [["hello", "Hello, you."], ["refund", "It is done."]]) {
      await page.locator("#input").fill(input);
      await page.locator("#input").press("Enter");
      await page.getByText(new RegExp(`> ${input}\\s+${answer}`)).waitFor();
    }
  },

  async "the page of the server: an answer, a reload, and a stop"() {
    const page = await open("/#key=own");
    await write(page, "slow");
    await page.getByText("It rains", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("It rains", { exact: true }).waitFor();
    assert.equal(await page.locator(".user").count(), 1);
    await goOn();
    await page.getByText("It rains in Lisbon.", { exact: true }).waitFor();
    await write(page, "slow");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/E_TURN_CANCELLED/).waitFor();
  },

  async "the page of the server: a tool, a question and a decision"() {
    const page = await open("/#key=decided");
    await write(page, "look");
    await page.locator("details.call", { hasText: "shop__look" }).waitFor();
    await page.getByText("I have looked.", { exact: true }).waitFor();
    await write(page, "refund");
    await page.getByText("Pay the money back?").waitFor();
    await page.reload();
    await page.getByText("Pay the money back?").waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("It is done.", { exact: true }).waitFor();
    assert.equal(await page.locator(".question").count(), 0);
    await write(page, "<img src=x onerror=document.title='no'>");
    await page.getByText("<img src=x", { exact: false }).waitFor();
    assert.equal(await page.title(), "goondan", "what is written is no markup");
  },

  async "the page of the server: two people in one conversation"() {
    const [one, other] = [await open("/#key=both"), await open("/#key=both")];
    await write(one, "hello");
    await other.getByText("Hello, you.", { exact: true }).waitFor();
    await write(one, "refund");
    for (const page of [one, other]) await page.getByText("Pay the money back?").waitFor();
    await other.getByRole("button", { name: "Approve" }).click();
    for (const page of [one, other]) {
      await page.getByText("It is done.", { exact: true }).waitFor();
      assert.equal(await page.locator(".question").count(), 0);
      assert.equal(await page.locator(".user").count(), 2);
    }
  },

  async "the page of the server: a turn in the background"() {
    const page = await open("/#key=planned");
    await write(page, "later");
    await page.getByText("It is done.", { exact: true }).waitFor();
    await page.getByText("It rains", { exact: true }).waitFor();
    await goOn();
    await page.getByText("It rains in Lisbon.", { exact: true }).waitFor();
    assert.equal(await page.getByText("in the background").count(), 0, "it was shown while it ran");
    assert.equal(await page.locator(".user").count(), 2);
  },

  async "the page of the server: another conversation in the middle of an answer"() {
    const page = await open("/#key=first");
    await write(page, "slow");
    await page.getByText("It rains", { exact: true }).waitFor();
    const choose = async (key) => {
      await page.getByLabel("Conversation").fill(key);
      await page.getByLabel("Conversation").press("Enter");
    };
    await choose("second");
    await write(page, "hello");
    await page.getByText("Hello, you.", { exact: true }).waitFor();
    assert.equal(await page.getByText("It rains", { exact: true }).count(), 0);
    await goOn();
    await choose("first");
    await page.getByText("It rains in Lisbon.", { exact: true }).waitFor();
    assert.equal(await page.locator(".user, .assistant").count(), 2);
  },
};

try {
  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      await scenario();
    } catch (error) {
      // What the person sees.
      for (const context of browser.contexts()) for (const page of context.pages()) console.log(await page.innerText("body"));
      throw error;
    }
    for (const context of browser.contexts()) await context.close();
    console.log(`ok: ${name}`);
  }
} finally {
  await browser.close();
}
