-- Has wrk send requests made beforehand, each once: a file of "<length>\n<bytes>" named after `--`.

local file

function init(arguments)
  file = assert(io.open(arguments[1], "rb"))
end

function request()
  local length = file:read("*n", 1)
  return length and file:read(length) or "GET /no-requests-left HTTP/1.1\r\nHost: x\r\n\r\n"
end
