# Fails until the greeting ends with an exclamation mark.
greeting=$(sh greet.sh Ada)
if [ "$greeting" != "Hello, Ada!" ]; then
  echo "expected: Hello, Ada! got: $greeting"
  exit 1
fi
echo "all tests pass"
