# An MCP server: it reads a JSON-RPC message from each line of its input, and writes the answer as a line. A real one
# uses an SDK; this one knows just enough to be run without one.

answer() { # the id, the result
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"
}

text() { # the id, a text without quotes
  answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"
}

while read -r message; do
  id=$(printf '%s' "$message" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $message in
  *'"method":"initialize"'*)
    answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"clock","version":"1"}}'
    ;;
  *'"method":"tools/list"'*)
    answer "$id" '{"tools":[
      {"name":"now","description":"Tells the time.","inputSchema":{"type":"object","properties":{}}},
      {"name":"greet","description":"Greets the user.","inputSchema":{"type":"object","properties":{}}}
    ]}' | tr -d '\n'
    echo
    ;;
  *'"method":"tools/call"'*'"name":"now"'*) text "$id" "It is $(date +%H:%M)." ;;
  *'"method":"tools/call"'*) text "$id" "$GREETING from process $$." ;;
  *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  *) ;; # a notification
  esac
done
