// A chat of AI SDK UI, unmodified, with the server whose address is the first argument. Prints what it sees, one line
// each, and fails at the first line that is not expected.
import assert from "node:assert";
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

const [url] = process.argv.slice(2);
const api = `${url}/v1/agents/assistant/ui`;

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) =>
    void (this.messages = [...this.messages.slice(0, index), structuredClone(message), ...this.messages.slice(index + 1)]);
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends AbstractChat {
  constructor(id, options = {}) {
    super({ id, state: new State(), transport: new DefaultChatTransport({ api }), ...options });
  }
}

const textOf = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
const kinds = (message) => message.parts.map((part) => part.type);
const until = async (what, holds) => {
  for (let tries = 0; !holds(); tries++) {
    assert(tries < 500, `waited too long for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

const scenarios = {
  async "a message is answered"() {
    const chat = new Chat("answered");
    await chat.sendMessage({ text: "hello" });
    assert.equal(chat.status, "ready");
    assert.deepEqual(chat.messages.map((message) => message.role), ["user", "assistant"]);
    assert.equal(textOf(chat.messages[1]), "Hello, you.");
    assert(kinds(chat.messages[1]).includes("reasoning"));
  },

  async "a file goes with it"() {
    const chat = new Chat("file");
    const files = [{ type: "file", mediaType: "image/png", filename: "dot.png", url: "data:image/png;base64,iVBORw0KGgo=" }];
    await chat.sendMessage({ text: "file", files });
    assert.equal(textOf(chat.messages[1]), "A picture.");
  },

  async "a tool runs"() {
    const chat = new Chat("tool");
    await chat.sendMessage({ text: "look" });
    const tool = chat.messages[1].parts.find((part) => part.type === "dynamic-tool");
    assert.deepEqual([tool.toolName, tool.state, tool.output], ["shop__look", "output-available", "found"]);
    assert.equal(textOf(chat.messages[1]), "I have looked.");
  },

  async "an approval is asked for and given"() {
    const chat = new Chat("approved", { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await chat.sendMessage({ text: "refund" });
    const tool = () => chat.messages[1].parts.find((part) => part.type === "dynamic-tool");
    assert.equal(tool().state, "approval-requested");
    await chat.addToolApprovalResponse({ id: tool().approval.id, approved: true });
    await until("the end of the turn", () => textOf(chat.messages[1]) === "It is done.");
    assert.equal(chat.messages.length, 2, "the same message goes on");
    assert.deepEqual([tool().state, tool().output], ["output-available", "paid back"]);
  },

  async "an approval is refused"() {
    const chat = new Chat("refused", { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await chat.sendMessage({ text: "refund" });
    const tool = () => chat.messages[1].parts.find((part) => part.type === "dynamic-tool");
    await chat.addToolApprovalResponse({ id: tool().approval.id, approved: false, reason: "too much" });
    await until("the end of the turn", () => textOf(chat.messages[1]) === "It is done.");
    assert.equal(tool().state, "output-denied");
  },

  async "a page that comes back reads the whole answer"() {
    const chat = new Chat("resumed");
    const sending = chat.sendMessage({ text: "slow" });
    await until("the first piece", () => chat.messages[1] && textOf(chat.messages[1]) !== "");
    // The page is gone: another one, with what the first one had stored.
    await chat.stop();
    await sending;
    const page = new Chat("resumed", { messages: [chat.messages[0]] });
    page.messages = [chat.messages[0]];
    const resuming = page.resumeStream();
    await fetch(`${url}/go-on`, { method: "POST" });
    await resuming;
    assert.equal(textOf(page.messages[1]), "It rains in Lisbon.");
    const none = new Chat("resumed");
    await none.resumeStream();
    assert.deepEqual([none.status, none.messages.length], ["ready", 0], "nothing runs");
  },

  async "an answer is stopped"() {
    const chat = new Chat("stopped");
    const sending = chat.sendMessage({ text: "slow" });
    await until("the first piece", () => chat.messages[1] && textOf(chat.messages[1]) !== "");
    await chat.stop();
    const cancelled = await fetch(`${api}/stopped/cancel`, { method: "POST" });
    assert.deepEqual(await cancelled.json(), { cancelled: true });
    await sending;
    assert.equal(chat.status, "ready");
  },

  async "an answer is made again"() {
    const chat = new Chat("again");
    await chat.sendMessage({ text: "count" });
    const first = textOf(chat.messages[1]);
    await chat.regenerate();
    assert.equal(chat.messages.length, 2);
    assert.notEqual(textOf(chat.messages[1]), first);
  },

  async "a failure is an error of the chat"() {
    const chat = new Chat("failed");
    await chat.sendMessage({ text: "fail" });
    assert.equal(chat.status, "error");
    assert.match(chat.error.message, /overloaded \(E_MODEL\)/);
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  await run();
  console.log(`ok: ${name}`);
}
