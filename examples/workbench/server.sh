# An MCP server: it reads a JSON-RPC message from each line of its input, and writes the answer as a line.

answer() { # the id, the result
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"
}

text() { # the id, a text, in JSON
  answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"
}

log=
for line in 1 2 3 4 5 6 7 8 9; do
  log="$log$line: nothing has happened, and then again nothing, for as long as the desk could hear\\n"
done
log="$log$log$log$log$log$log"

while read -r message; do
  id=${message#*'"id":'}
  id=${id%%[!0-9]*}
  case $message in
  *'"method":"initialize"'*)
    answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1"}}'
    ;;
  *'"method":"tools/list"'*)
    none='{"type":"object","properties":{}}'
    name='{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
    answer "$id" "{\"tools\":[\
{\"name\":\"now\",\"description\":\"Tells the time.\",\"inputSchema\":$none},\
{\"name\":\"greet\",\"description\":\"Greets somebody.\",\"inputSchema\":$name},\
{\"name\":\"log\",\"description\":\"Returns the log of the desk.\",\"inputSchema\":$none}]}"
    ;;
  *'"method":"tools/call"'*'"name":"now"'*) text "$id" "It is $(date +%H:%M)." ;;
  *'"method":"tools/call"'*'"name":"log"'*) text "$id" "${log}all is well" ;;
  *'"method":"tools/call"'*) text "$id" "Hello from the desk." ;;
  *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  *) ;; # a notification
  esac
done
