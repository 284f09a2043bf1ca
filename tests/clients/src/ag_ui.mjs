// A client of AG-UI, unmodified, with the server whose address is the first argument. Prints what it sees, one line each,
// and fails at the first line that is not expected.
import assert from "node:assert";
import { HttpAgent } from "@ag-ui/client";

const [url] = process.argv.slice(2);

const agentOf = (threadId) => new HttpAgent({ url: `${url}/v1/agents/assistant/ag-ui`, threadId });

/** Runs the agent, and returns the types of the events and the last of them. */
const run = async (agent, text, parameters = {}) => {
  const seen = [];
  if (text) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
  try {
    await agent.runAgent(parameters, { onEvent: ({ event }) => void seen.push(event) });
  } catch (error) {
    if (seen.at(-1)?.type !== "RUN_ERROR") throw error;
  }
  return { kinds: seen.map((event) => event.type), last: seen.at(-1) };
};

const scenarios = {
  async "a message is answered"() {
    const agent = agentOf("ag-answered");
    const { kinds, last } = await run(agent, "hello");
    assert.deepEqual([kinds[0], last.type, last.outcome.type], ["RUN_STARTED", "RUN_FINISHED", "success"]);
    assert(kinds.includes("REASONING_MESSAGE_CONTENT"));
    const answer = agent.messages.at(-1);
    assert.deepEqual([answer.role, answer.content], ["assistant", "Hello, you."]);
  },

  async "a tool runs, and its call and result are messages"() {
    const agent = agentOf("ag-tool");
    await run(agent, "look");
    const call = agent.messages.find((message) => message.toolCalls?.length);
    assert.deepEqual([call.toolCalls[0].function.name, call.toolCalls[0].function.arguments], ["shop__look", "{}"]);
    const result = agent.messages.find((message) => message.role === "tool");
    assert.deepEqual([result.toolCallId, result.content], [call.toolCalls[0].id, "found"]);
    assert.equal(agent.messages.at(-1).content, "I have looked.");
  },

  async "an interrupt is resolved"() {
    const agent = agentOf("ag-approved");
    const { last } = await run(agent, "refund");
    assert.equal(last.outcome.type, "interrupt");
    const [interrupt] = last.outcome.interrupts;
    assert.equal(interrupt.message, "Pay the money back?");
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }];
    const { last: end } = await run(agent, undefined, { resume });
    assert.equal(end.outcome.type, "success");
    const result = agent.messages.find((message) => message.role === "tool");
    assert.deepEqual([result.toolCallId, result.content], [interrupt.toolCallId, "paid back"]);
    assert.equal(agent.messages.filter((message) => message.toolCalls?.length).length, 1, "the call is told once");
    assert.equal(agent.messages.at(-1).content, "It is done.");
  },

  async "an interrupt is cancelled"() {
    const agent = agentOf("ag-refused");
    const { last } = await run(agent, "refund");
    const [interrupt] = last.outcome.interrupts;
    await run(agent, undefined, { resume: [{ interruptId: interrupt.id, status: "cancelled" }] });
    assert.match(agent.messages.find((message) => message.role === "tool").content, /the person said no/);
    assert.equal(agent.messages.at(-1).content, "It is done.");
  },

  async "a second message goes on with the conversation"() {
    const agent = agentOf("ag-two");
    await run(agent, "hello");
    await run(agent, "look");
    assert.equal(agent.messages.at(-1).content, "I have looked.");
  },

  async "what was told of an answer that begins again is taken back"() {
    const agent = agentOf("ag-again");
    await run(agent, "hello");
    await run(agent, "restart");
    const texts = agent.messages.filter((message) => message.role === "assistant").map((message) => message.content);
    assert.deepEqual(texts, ["Hello, you.", "It rains."]);
    assert.equal(agent.messages.filter((message) => message.role === "user").length, 2);
  },

  async "a failure is a run that failed"() {
    const { last } = await run(agentOf("ag-failed"), "fail");
    assert.deepEqual([last.type, last.code, last.message], ["RUN_ERROR", "E_MODEL", "overloaded"]);
  },
};

for (const [name, scenario] of Object.entries(scenarios)) {
  await scenario();
  console.log(`ok: ${name}`);
}
