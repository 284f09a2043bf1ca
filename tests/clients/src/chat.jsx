// A page with `useChat` of AI SDK, which keeps what it has while no answer runs, as pages that store their messages do.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useEffect } from "react";
import { createRoot } from "react-dom/client";

const id = new URLSearchParams(location.search).get("chat");
const transport = new DefaultChatTransport({ api: "/v1/agents/assistant/ui" });

const Part = ({ part, decide }) => {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type !== "dynamic-tool") return null;
  return (
    <p data-state={part.state}>
      {part.toolName} {JSON.stringify(part.output)}
      {part.state === "approval-requested" && (
        <button onClick={() => decide({ id: part.approval.id, approved: true })}>Approve</button>
      )}
    </p>
  );
};

const Chat = () => {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: JSON.parse(sessionStorage.getItem(id) ?? "[]"),
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    if (status !== "streaming") sessionStorage.setItem(id, JSON.stringify(messages));
  }, [messages, status]);
  const send = (submit) => {
    submit.preventDefault();
    sendMessage({ text: new FormData(submit.target).get("text") });
  };
  return (
    <>
      {messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {message.parts.map((part, at) => <Part key={at} part={part} decide={addToolApprovalResponse} />)}
        </article>
      ))}
      <output>{error ? error.message : status}</output>
      <form onSubmit={send}><input name="text" /></form>
    </>
  );
};

createRoot(document.body).render(<Chat />);
